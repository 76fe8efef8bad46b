import Foundation

extension CKDatabase {
    /// A subscription.
    /// - Throws: `unknownItem` if there is none.
    public func subscription(for subscriptionID: CKSubscription.ID) async throws -> CKSubscription {
        guard let result = try await service.subscriptions([subscriptionID]).first else {
            throw CKError.unreadable("subscription")
        }
        return try result.1.get()
    }

    /// Subscriptions by their IDs, each with its subscription or error.
    public func subscriptions(
        for ids: [CKSubscription.ID]
    ) async throws -> [CKSubscription.ID: Result<CKSubscription, any Error>] {
        Dictionary(try await service.subscriptions(ids)) { first, _ in first }
    }

    /// All subscriptions of the database.
    public func allSubscriptions() async throws -> [CKSubscription] { try await service.allSubscriptions() }

    /// Saves a subscription; what is committed after that is told of.
    @discardableResult
    public func save(_ subscription: CKSubscription) async throws -> CKSubscription {
        let results = try await service.modifySubscriptions(saving: [subscription], deleting: [])
        guard case .saved(_, let result)? = results.first else { throw CKError.unreadable("subscription") }
        return try result.get()
    }

    /// Deletes a subscription.
    /// - Throws: `unknownItem` if there is none.
    @discardableResult
    public func deleteSubscription(withID subscriptionID: CKSubscription.ID) async throws -> CKSubscription.ID {
        let results = try await service.modifySubscriptions(saving: [], deleting: [subscriptionID])
        guard case .deleted(_, let result)? = results.first else { throw CKError.unreadable("subscription") }
        try result.get()
        return subscriptionID
    }

    /// Saves and deletes subscriptions.
    /// - Throws: where nothing was done; errors of single subscriptions are in the results.
    @discardableResult
    public func modifySubscriptions(
        saving subscriptionsToSave: [CKSubscription], deleting subscriptionIDsToDelete: [CKSubscription.ID]
    ) async throws -> (
        saveResults: [CKSubscription.ID: Result<CKSubscription, any Error>],
        deleteResults: [CKSubscription.ID: Result<Void, any Error>]
    ) {
        var saved: [CKSubscription.ID: Result<CKSubscription, any Error>] = [:]
        var deleted: [CKSubscription.ID: Result<Void, any Error>] = [:]
        let results = try await service.modifySubscriptions(
            saving: subscriptionsToSave, deleting: subscriptionIDsToDelete)
        for result in results {
            switch result {
            case .saved(let id, let result): saved[id] = result
            case .deleted(let id, let result): deleted[id] = result
            }
        }
        return (saved, deleted)
    }

    // MARK: Completion handlers

    /// Saves a subscription.
    @preconcurrency
    public func save(
        _ subscription: CKSubscription, completionHandler: @escaping @Sendable (CKSubscription?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.save(subscription) }, completionHandler)
    }

    /// Fetches a subscription.
    @preconcurrency
    public func fetch(
        withSubscriptionID subscriptionID: CKSubscription.ID,
        completionHandler: @escaping @Sendable (CKSubscription?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.subscription(for: subscriptionID) }, completionHandler)
    }

    /// Fetches subscriptions by their IDs.
    @preconcurrency
    public func fetch(
        withSubscriptionIDs subscriptionIDs: [CKSubscription.ID],
        completionHandler:
            @escaping @Sendable (Result<[CKSubscription.ID: Result<CKSubscription, any Error>], any Error>) -> Void
    ) {
        Callbacks.complete({ try await self.subscriptions(for: subscriptionIDs) }, completionHandler)
    }

    /// Fetches all subscriptions of the database.
    @preconcurrency
    public func fetchAllSubscriptions(
        completionHandler: @escaping @Sendable ([CKSubscription]?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.allSubscriptions() }, completionHandler)
    }

    /// Deletes a subscription.
    @preconcurrency
    public func delete(
        withSubscriptionID subscriptionID: CKSubscription.ID,
        completionHandler: @escaping @Sendable (CKSubscription.ID?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.deleteSubscription(withID: subscriptionID) }, completionHandler)
    }

    /// Saves and deletes subscriptions.
    @preconcurrency
    public func modifySubscriptions(
        saving subscriptionsToSave: [CKSubscription], deleting subscriptionIDsToDelete: [CKSubscription.ID],
        completionHandler:
            @escaping @Sendable (
                Result<
                    (
                        saveResults: [CKSubscription.ID: Result<CKSubscription, any Error>],
                        deleteResults: [CKSubscription.ID: Result<Void, any Error>]
                    ), any Error
                >
            ) -> Void
    ) {
        Callbacks.complete(
            {
                try await self.modifySubscriptions(saving: subscriptionsToSave, deleting: subscriptionIDsToDelete)
            }, completionHandler)
    }
}

/// Saves and deletes subscriptions.
open class CKModifySubscriptionsOperation: CKDatabaseOperation, @unchecked Sendable {
    /// The subscriptions to save.
    @CKGuarded public var subscriptionsToSave: [CKSubscription]? = nil
    /// The subscriptions to delete.
    @CKGuarded public var subscriptionIDsToDelete: [CKSubscription.ID]? = nil
    /// Called for each subscription to save.
    @preconcurrency @CKGuarded
    public var perSubscriptionSaveBlock: (@Sendable (CKSubscription.ID, Result<CKSubscription, any Error>) -> Void)? =
        nil
    /// Called for each subscription to delete.
    @preconcurrency @CKGuarded
    public var perSubscriptionDeleteBlock: (@Sendable (CKSubscription.ID, Result<Void, any Error>) -> Void)? = nil
    /// Called once, at the end.
    @preconcurrency @CKGuarded
    public var modifySubscriptionsResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called once, at the end; the older form of `modifySubscriptionsResultBlock`.
    @preconcurrency @CKGuarded
    public var modifySubscriptionsCompletionBlock:
        (@Sendable ([CKSubscription]?, [CKSubscription.ID]?, (any Error)?) -> Void)? = nil

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation that saves and deletes.
    public convenience init(
        subscriptionsToSave: [CKSubscription]? = nil, subscriptionIDsToDelete: [CKSubscription.ID]? = nil
    ) {
        self.init()
        self.subscriptionsToSave = subscriptionsToSave
        self.subscriptionIDsToDelete = subscriptionIDsToDelete
    }

    override func execute() async {
        let outcome: Result<[ModifySubscriptionResult], any Error>
        do throws(CKError) {
            try checkCancellation()
            outcome = .success(
                try await service.modifySubscriptions(
                    saving: subscriptionsToSave ?? [], deleting: subscriptionIDsToDelete ?? []))
        } catch {
            outcome = .failure(error)
        }
        await Callbacks.run { [self] in
            var saved: [CKSubscription] = []
            var deleted: [CKSubscription.ID] = []
            var errors: [AnyHashable: any Error] = [:]
            for result in (try? outcome.get()) ?? [] {
                switch result {
                case .saved(let id, let result):
                    perSubscriptionSaveBlock?(id, result)
                    if case .success(let subscription) = result { saved.append(subscription) }
                    errors[id] = result.failure
                case .deleted(let id, let result):
                    perSubscriptionDeleteBlock?(id, result)
                    if case .success = result { deleted.append(id) }
                    errors[id] = result.failure
                }
            }
            modifySubscriptionsResultBlock?(outcome.map { _ in () })
            modifySubscriptionsCompletionBlock?(saved, deleted, outcome.failure ?? CKError.partialFailure(errors))
        }
    }
}

/// Fetches subscriptions by their IDs, or all of a database.
open class CKFetchSubscriptionsOperation: CKDatabaseOperation, @unchecked Sendable {
    /// The subscriptions to fetch; nil for all.
    @CKGuarded public var subscriptionIDs: [CKSubscription.ID]? = nil
    /// Called for each subscription.
    @preconcurrency @CKGuarded
    public var perSubscriptionResultBlock: (@Sendable (CKSubscription.ID, Result<CKSubscription, any Error>) -> Void)? =
        nil
    /// Called once, at the end.
    @preconcurrency @CKGuarded
    public var fetchSubscriptionsResultBlock: (@Sendable (Result<Void, any Error>) -> Void)? = nil
    /// Called once, at the end; the older form of `fetchSubscriptionsResultBlock`.
    @preconcurrency @CKGuarded
    public var fetchSubscriptionCompletionBlock:
        (@Sendable ([CKSubscription.ID: CKSubscription]?, (any Error)?) -> Void)? = nil

    /// An operation with nothing to do yet.
    public override init() { super.init() }

    /// An operation that fetches these subscriptions.
    public convenience init(subscriptionIDs: [CKSubscription.ID]) {
        self.init()
        self.subscriptionIDs = subscriptionIDs
    }

    /// An operation that fetches all subscriptions of the database.
    public class func fetchAllSubscriptionsOperation() -> Self {
        guard let operation = CKFetchSubscriptionsOperation() as? Self else {
            preconditionFailure("a subclass of CKFetchSubscriptionsOperation has to make this operation itself")
        }
        return operation
    }

    override func execute() async {
        let outcome: Result<[(CKSubscription.ID, Result<CKSubscription, any Error>)], any Error>
        do throws(CKError) {
            try checkCancellation()
            if let subscriptionIDs {
                outcome = .success(try await service.subscriptions(subscriptionIDs))
            } else {
                outcome = .success(try await service.allSubscriptions().map { ($0.subscriptionID, .success($0)) })
            }
        } catch {
            outcome = .failure(error)
        }
        await Callbacks.run { [self] in
            var subscriptions: [CKSubscription.ID: CKSubscription] = [:]
            var errors: [AnyHashable: any Error] = [:]
            for (id, result) in (try? outcome.get()) ?? [] {
                perSubscriptionResultBlock?(id, result)
                if case .success(let subscription) = result { subscriptions[id] = subscription }
                errors[id] = result.failure
            }
            fetchSubscriptionsResultBlock?(outcome.map { _ in () })
            fetchSubscriptionCompletionBlock?(subscriptions, outcome.failure ?? CKError.partialFailure(errors))
        }
    }
}
