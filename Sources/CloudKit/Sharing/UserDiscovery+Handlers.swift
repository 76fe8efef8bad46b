import Foundation

// The calls with completion handlers, and the operations, that Apple deprecated in favour of shares' participants.
extension CKContainer {
    /// The user with an address who may be found; nil if there is none.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipant(withEmailAddress:)")
    @preconcurrency
    public func discoverUserIdentity(
        withEmailAddress email: String,
        completionHandler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
    ) {
        discover(CKUserIdentity.LookupInfo(emailAddress: email), completionHandler)
    }

    /// The user with a telephone number who may be found; nil if there is none.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipant(withPhoneNumber:)")
    @preconcurrency
    public func discoverUserIdentity(
        withPhoneNumber phoneNumber: String,
        completionHandler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
    ) {
        discover(CKUserIdentity.LookupInfo(phoneNumber: phoneNumber), completionHandler)
    }

    /// The user of a record who may be found; nil if there is none.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipant(withUserRecordID:)")
    @preconcurrency
    public func discoverUserIdentity(
        withUserRecordID userRecordID: CKRecord.ID,
        completionHandler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
    ) {
        discover(CKUserIdentity.LookupInfo(userRecordID: userRecordID), completionHandler)
    }

    private func discover(
        _ info: CKUserIdentity.LookupInfo, _ handler: @escaping @Sendable (CKUserIdentity?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.publicCloudDatabase.service.discover([info]).first }) { result in
            handler((try? result.get()) ?? nil, result.failure)
        }
    }

    /// Those of the users with these addresses who may be found.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipants(forEmailAddresses:)")
    @preconcurrency
    public func discoverUserIdentities(
        forEmailAddresses emails: [String],
        completionHandler: @escaping @Sendable (Result<[String: CKUserIdentity], any Error>) -> Void
    ) {
        Callbacks.complete({ try await self.userIdentities(forEmailAddresses: emails) }, completionHandler)
    }

    /// Those of the users with these telephone numbers who may be found.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipants(forPhoneNumbers:)")
    @preconcurrency
    public func discoverUserIdentities(
        forPhoneNumbers phoneNumbers: [String],
        completionHandler: @escaping @Sendable (Result<[String: CKUserIdentity], any Error>) -> Void
    ) {
        Callbacks.complete({ try await self.userIdentities(forPhoneNumbers: phoneNumbers) }, completionHandler)
    }

    /// Those of the users of these records who may be found.
    @available(*, deprecated, message: "no longer supported; use fetchShareParticipants(forUserRecordIDs:)")
    @preconcurrency
    public func discoverUserIdentities(
        forUserRecordIDs userRecordIDs: [CKRecord.ID],
        completionHandler: @escaping @Sendable (Result<[CKRecord.ID: CKUserIdentity], any Error>) -> Void
    ) {
        Callbacks.complete({ try await self.userIdentities(forUserRecordIDs: userRecordIDs) }, completionHandler)
    }

    /// The users in the address book who may be found: none, as there is no address book here.
    @available(*, deprecated, message: "no longer supported")
    @preconcurrency
    public func discoverAllIdentities(
        completionHandler: @escaping @Sendable ([CKUserIdentity]?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.allUserIdentitiesFromContacts() }, completionHandler)
    }

    /// See `applicationPermissionStatus(for:)`; `couldNotComplete` with the error where the server cannot be asked.
    @available(*, deprecated, message: "no longer supported")
    @preconcurrency
    public func status(
        forApplicationPermission applicationPermission: CKContainer.ApplicationPermissions,
        completionHandler: @escaping CKContainer.ApplicationPermissionBlock
    ) {
        Callbacks.complete({ try await self.applicationPermissionStatus(for: applicationPermission) }) { result in
            completionHandler((try? result.get()) ?? .couldNotComplete, result.failure)
        }
    }

    /// See `requestApplicationPermission(_:)`; `couldNotComplete` with the error where the server cannot be asked.
    @available(*, deprecated, message: "no longer supported")
    @preconcurrency
    public func requestApplicationPermission(
        _ applicationPermission: CKContainer.ApplicationPermissions,
        completionHandler: @escaping CKContainer.ApplicationPermissionBlock
    ) {
        status(forApplicationPermission: applicationPermission, completionHandler: completionHandler)
    }
}

/// Finds users who may be found, by addresses or record IDs. Apple deprecated it.
@available(*, deprecated, message: "no longer supported; use CKFetchShareParticipantsOperation")
open class CKDiscoverUserIdentitiesOperation: CKOperation, @unchecked Sendable {
    /// Who is looked for.
    @CKGuarded public var userIdentityLookupInfos: [CKUserIdentity.LookupInfo] = []
    /// Called for each user who is found.
    @preconcurrency @CKGuarded
    public var userIdentityDiscoveredBlock: (@Sendable (CKUserIdentity, CKUserIdentity.LookupInfo) -> Void)? = nil
    /// Called once, at the end. Users who cannot be found are no failure of the operation.
    @preconcurrency @CKGuarded
    public var discoverUserIdentitiesResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called once, at the end; the older form of `discoverUserIdentitiesResultBlock`.
    @preconcurrency @CKGuarded
    public var discoverUserIdentitiesCompletionBlock: (@Sendable ((any Error)?) -> Void)? = nil

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation that looks for these users.
    public convenience init(userIdentityLookupInfos: [CKUserIdentity.LookupInfo]) {
        self.init()
        self.userIdentityLookupInfos = userIdentityLookupInfos
    }

    override func execute() async {
        let result = await outcome { () async throws(CKError) -> [CKUserIdentity] in
            try checkCancellation()
            return try await users.discover(userIdentityLookupInfos)
        }
        await Callbacks.run { [self] in
            for identity in (try? result.get()) ?? [] {
                if let info = identity.lookupInfo { userIdentityDiscoveredBlock?(identity, info) }
            }
            discoverUserIdentitiesResultBlock?(result.map { _ in () })
            discoverUserIdentitiesCompletionBlock?(result.failure)
        }
    }
}

/// Finds the users in the address book. There is none here, so it finds no user. Apple deprecated it.
@available(*, deprecated, message: "no longer supported")
open class CKDiscoverAllUserIdentitiesOperation: CKOperation, @unchecked Sendable {
    /// Called for each user who is found: not here.
    @preconcurrency @CKGuarded public var userIdentityDiscoveredBlock: (@Sendable (CKUserIdentity) -> Void)? = nil
    /// Called once, at the end.
    @preconcurrency @CKGuarded
    public var discoverAllUserIdentitiesResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called once, at the end; the older form of `discoverAllUserIdentitiesResultBlock`.
    @preconcurrency @CKGuarded
    public var discoverAllUserIdentitiesCompletionBlock: (@Sendable ((any Error)?) -> Void)? = nil

    /// An operation that looks for all.
    public override init() { super.init() }

    override func execute() async {
        let result = await outcome { () async throws(CKError) in
            try checkCancellation()
            _ = try await users.caller()
        }
        await Callbacks.run { [self] in
            discoverAllUserIdentitiesResultBlock?(result)
            discoverAllUserIdentitiesCompletionBlock?(result.failure)
        }
    }
}

extension CKOperation {
    /// The public database of the operation's container, with the time that is left.
    var users: DatabaseService {
        var service = (effectiveConfiguration?.container ?? CKContainer.default()).publicCloudDatabase.configured
        service.times = times.filled(from: service.times)
        return service.begun(at: startTime)
    }
}
