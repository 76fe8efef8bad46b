import Foundation
import ServiceClient

extension CKDatabaseOperation {
    /// Writes the operation to disk, where it is long-lived and its class can be kept, and says so.
    /// - Returns: where it is; nil where it is nowhere.
    func keptOnDisk() async -> LongLivedStore? {
        guard effectiveConfiguration?.isLongLived == true, !isCancelled, let work = self as? any LongLivedWork else {
            return nil
        }
        // Nobody is signed in, or the server was never reached: the operation itself tells why.
        guard let store = try? await service.longLivedStore() else { return nil }
        let keys = longLivedKeys ?? LongLivedKeys()
        let copy = Self.copy(of: work, keys)
        do {
            try store.save(copy)
        } catch {
            Warnings.say("the long-lived operation \(operationID) ends with this process: \(error)")
            return nil
        }
        longLivedKeys = keys
        keepReceipts = { receipts in
            var copy = copy
            copy.keys.receipts = receipts
            do {
                try store.save(copy)
            } catch {
                Warnings.say("the long-lived operation \(copy.id) would send its files again: \(error)")
            }
        }
        if let block = longLivedOperationWasPersistedBlock { await Callbacks.run(block) }
        return store
    }

    static func copy(of work: any LongLivedWork, _ keys: LongLivedKeys) -> LongLivedCopy {
        let archiver = NSKeyedArchiver(requiringSecureCoding: true)
        archiver.encode(Int64(work.service.scope.rawValue), forKey: "Scope")
        archiver.write(codable: work.effectiveConfiguration?.content, "Configuration")
        archiver.write(work.group, "Group")
        work.encodeWork(with: archiver)
        archiver.finishEncoding()
        return LongLivedCopy(
            id: work.operationID, operation: type(of: work).workName, keys: keys, work: archiver.encodedData)
    }

    /// The operation that a copy is of, ready to be added again.
    /// - Throws: what is wrong with the copy.
    static func restored(_ copy: LongLivedCopy, in container: CKContainer) throws -> CKDatabaseOperation {
        guard let work = LongLivedClasses.make(copy.operation) else {
            throw CKError(
                .incompatibleVersion,
                reason: "the long-lived operation \(copy.id) is a \(copy.operation), which this version does not know")
        }
        let unarchiver = try NSKeyedUnarchiver(forReadingFrom: copy.work)
        unarchiver.requiresSecureCoding = true
        work.identity = copy.id
        work.longLivedKeys = copy.keys
        work.group = unarchiver.object(CKOperationGroup.self, "Group")
        work.configuration = unarchiver.codable(CKOperation.Configuration.Content.self, "Configuration")
            .map { CKOperation.Configuration($0) }
        work.database = container.database(
            with: CKDatabase.Scope(rawValue: unarchiver.integer("Scope")) ?? .private)
        work.decodeWork(with: unarchiver)
        return work
    }
}

extension DatabaseService {
    /// Where the long-lived operations of the user who is signed in are. Where the server cannot be reached, the user
    /// is the one whom the session had when it was reached last.
    /// - Throws: `notAuthenticated` if no user is signed in, and what keeps the server from being asked.
    func longLivedStore() async throws(CKError) -> LongLivedStore {
        let (session, configuration) = try account.session()
        let known = KnownUser(
            container: configuration.container, environment: configuration.environment.rawValue)
        let user: String
        do throws(CKError) {
            user = try await userRecordID().recordName
            if let token = session.userToken { known.note(user, of: token) }
        } catch {
            guard error.isOfUnreachableServer, let name = session.userToken.flatMap({ known.name(of: $0) }) else {
                throw error
            }
            user = name
        }
        return LongLivedStore(
            container: configuration.container, environment: configuration.environment.rawValue, user: user)
    }
}

extension CKContainer {
    /// The IDs of the user's long-lived operations that have not ended, the oldest first: those under way, and those
    /// that were under way when a program ended.
    /// - Throws: `notAuthenticated` if no user is signed in.
    public func allLongLivedOperationIDs() async throws -> [CKOperation.ID] {
        try await privateCloudDatabase.service.longLivedStore().ids()
    }

    /// A long-lived operation; nil if it has ended or was cancelled.
    ///
    /// It is a new object without blocks. Set its blocks and add it to the container: it does what is left to do. What
    /// it changed before the program ended is not changed again, if that is less than 23 hours ago. No service of the
    /// system runs operations while no program does: one that is not added stays as it is.
    /// - Throws: `notAuthenticated` if no user is signed in, `incompatibleVersion` if a later version of the SDK wrote
    ///   it.
    public func longLivedOperation(for operationID: CKOperation.ID) async throws -> CKOperation? {
        guard let copy = try await privateCloudDatabase.service.longLivedStore().copy(of: operationID) else {
            return nil
        }
        return try CKDatabaseOperation.restored(copy, in: self)
    }

    /// The IDs of the user's long-lived operations that have not ended.
    @preconcurrency
    public func fetchAllLongLivedOperationIDs(
        completionHandler: @escaping @Sendable ([CKOperation.ID]?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.allLongLivedOperationIDs() }
    }

    /// A long-lived operation; nil if it has ended or was cancelled.
    @preconcurrency
    public func fetchLongLivedOperation(
        withID operationID: CKOperation.ID,
        completionHandler: @escaping @Sendable (CKOperation?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ result in
            completionHandler((try? result.get()) ?? nil, result.failure)
        }) {
            try await self.longLivedOperation(for: operationID)
        }
    }
}
