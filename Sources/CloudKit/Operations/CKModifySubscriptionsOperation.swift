import Foundation

/// Saves and deletes subscriptions. The server does not have subscriptions yet: it ends with `serverRejectedRequest`.
public class CKModifySubscriptionsOperation: CKDatabaseOperation, @unchecked Sendable {
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
        let error = refusal(of: "subscriptions")
        await Callbacks.run { [self] in
            modifySubscriptionsResultBlock?(.failure(error))
            modifySubscriptionsCompletionBlock?(nil, nil, error)
        }
    }
}

/// Fetches subscriptions. The server does not have subscriptions yet: it ends with `serverRejectedRequest`.
public class CKFetchSubscriptionsOperation: CKDatabaseOperation, @unchecked Sendable {
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
        let error = refusal(of: "subscriptions")
        await Callbacks.run { [self] in
            fetchSubscriptionsResultBlock?(.failure(error))
            fetchSubscriptionCompletionBlock?(nil, error)
        }
    }
}

extension CKOperation {
    /// What an operation ends with that the server has nothing for.
    func refusal(of what: String) -> CKError { isCancelled ? ErrorMapping.cancelled : .notBuilt(what) }
}
