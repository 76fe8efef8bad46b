import Foundation

extension CKDatabase {
    /// A subscription.
    /// - Throws: `unknownItem` if there is none.
    public func subscription(for subscriptionID: CKSubscription.ID) async throws -> CKSubscription {
        guard let result = try await service.subscriptions.named([subscriptionID]).first else {
            throw CKError.unreadable("subscription")
        }
        return try result.1.get()
    }

    /// Subscriptions by their IDs, each with its subscription or error.
    public func subscriptions(
        for ids: [CKSubscription.ID]
    ) async throws -> [CKSubscription.ID: Result<CKSubscription, any Error>] {
        Dictionary(try await service.subscriptions.named(ids)) { first, _ in first }
    }

    /// All subscriptions of the database, but for those of other programs that have no form here: asked for by its ID,
    /// such a one fails with `invalidArguments`.
    public func allSubscriptions() async throws -> [CKSubscription] {
        try await service.subscriptions.all().compactMap { try? $0.1.get() }
    }

    /// Saves a subscription; what is committed after that is told of.
    @discardableResult
    public func save(_ subscription: CKSubscription) async throws -> CKSubscription {
        try await service.subscriptions.modify(saving: [subscription], deleting: []).savedItem()
    }

    /// Deletes a subscription.
    /// - Throws: `unknownItem` if there is none.
    @discardableResult
    public func deleteSubscription(withID subscriptionID: CKSubscription.ID) async throws -> CKSubscription.ID {
        try await service.subscriptions.modify(saving: [], deleting: [subscriptionID]).deletedID()
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
        try await service.subscriptions.modify(saving: subscriptionsToSave, deleting: subscriptionIDsToDelete).byID()
    }

    // MARK: Completion handlers

    /// Saves a subscription.
    @preconcurrency
    public func save(
        _ subscription: CKSubscription, completionHandler: @escaping @Sendable (CKSubscription?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.save(subscription) }
    }

    /// Fetches a subscription.
    @preconcurrency
    public func fetch(
        withSubscriptionID subscriptionID: CKSubscription.ID,
        completionHandler: @escaping @Sendable (CKSubscription?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.subscription(for: subscriptionID) }
    }

    /// Fetches subscriptions by their IDs.
    @preconcurrency
    public func fetch(
        withSubscriptionIDs subscriptionIDs: [CKSubscription.ID],
        completionHandler:
            @escaping @Sendable (Result<[CKSubscription.ID: Result<CKSubscription, any Error>], any Error>) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.subscriptions(for: subscriptionIDs) }
    }

    /// Fetches all subscriptions of the database.
    @preconcurrency
    public func fetchAllSubscriptions(
        completionHandler: @escaping @Sendable ([CKSubscription]?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.allSubscriptions() }
    }

    /// Deletes a subscription.
    @preconcurrency
    public func delete(
        withSubscriptionID subscriptionID: CKSubscription.ID,
        completionHandler: @escaping @Sendable (CKSubscription.ID?, (any Error)?) -> Void
    ) {
        Callbacks.complete(completionHandler) { try await self.deleteSubscription(withID: subscriptionID) }
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
        Callbacks.complete(completionHandler) {
            try await self.modifySubscriptions(saving: subscriptionsToSave, deleting: subscriptionIDsToDelete)
        }
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
        let result = await outcome { () async throws(CKError) -> [ModifySubscriptionResult] in
            try checkCancellation()
            return try await service.subscriptions.modify(
                saving: subscriptionsToSave ?? [], deleting: subscriptionIDsToDelete ?? [])
        }
        await Callbacks.run { [self] in
            tell(
                result, saves: perSubscriptionSaveBlock, deletes: perSubscriptionDeleteBlock,
                end: modifySubscriptionsResultBlock, olderEnd: modifySubscriptionsCompletionBlock)
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
        let result = await outcome {
            () async throws(CKError) -> [(CKSubscription.ID, Result<CKSubscription, any Error>)] in
            try checkCancellation()
            if let subscriptionIDs { return try await service.subscriptions.named(subscriptionIDs) }
            return try await service.subscriptions.all()
        }
        await Callbacks.run { [self] in
            tell(
                result, each: perSubscriptionResultBlock, end: fetchSubscriptionsResultBlock,
                olderEnd: fetchSubscriptionCompletionBlock)
        }
    }
}
