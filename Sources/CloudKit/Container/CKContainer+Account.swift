import Foundation
import ServiceClient

extension CKContainer {
    /// Whether a user is signed in: `available`, or `noAccount` where no session is configured, or the server does not
    /// take it any more.
    /// - Throws: `networkUnavailable` and the like where the server cannot be asked; `badContainer` where nothing is
    ///   configured.
    public func accountStatus() async throws -> CKAccountStatus {
        let (session, configuration) = try account.session()
        guard session.hasUser || configuration.serverKeyFile != nil else { return .noAccount }
        do {
            // Asked anew each time: a session that ended is not known by any other way.
            _ = try await session.askUserRecordName()
            return .available
        } catch {
            if (error as? ServiceFailure)?.isSignedOut == true { return .noAccount }
            let mapped = publicCloudDatabase.service.mapping.error(error)
            if (error as? ServiceClientError)?.subject == .session { return .noAccount }
            throw mapped
        }
    }

    /// Whether a user is signed in; `couldNotDetermine` with the error where the server cannot be asked.
    @preconcurrency
    public func accountStatus(completionHandler: @escaping @Sendable (CKAccountStatus, (any Error)?) -> Void) {
        Callbacks.complete({ try await self.accountStatus() }) { result in
            completionHandler((try? result.get()) ?? .couldNotDetermine, result.failure)
        }
    }

    /// The ID of the user's record, the same on all devices of the user, another in other containers.
    /// - Throws: `notAuthenticated` where nobody is signed in.
    public func userRecordID() async throws -> CKRecord.ID {
        try await publicCloudDatabase.service.userRecordID()
    }

    /// The ID of the user's record.
    @preconcurrency
    public func fetchUserRecordID(completionHandler: @escaping @Sendable (CKRecord.ID?, (any Error)?) -> Void) {
        Callbacks.complete({ try await self.userRecordID() }) { result in
            completionHandler(try? result.get(), result.failure)
        }
    }
}
