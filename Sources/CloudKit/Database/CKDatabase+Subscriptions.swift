// The server does not have subscriptions yet: everything here fails with `serverRejectedRequest`, which says so.
extension CKDatabase {
    private static var refusal: CKError { .notBuilt("subscriptions") }

    /// A subscription.
    public func subscription(for subscriptionID: CKSubscription.ID) async throws -> CKSubscription {
        throw Self.refusal
    }

    /// Subscriptions by their IDs, each with its subscription or error.
    public func subscriptions(
        for ids: [CKSubscription.ID]
    ) async throws -> [CKSubscription.ID: Result<CKSubscription, any Error>] {
        throw Self.refusal
    }

    /// All subscriptions of the database.
    public func allSubscriptions() async throws -> [CKSubscription] { throw Self.refusal }

    /// Saves a subscription.
    @discardableResult
    public func save(_ subscription: CKSubscription) async throws -> CKSubscription { throw Self.refusal }

    /// Deletes a subscription.
    @discardableResult
    public func deleteSubscription(withID subscriptionID: CKSubscription.ID) async throws -> CKSubscription.ID {
        throw Self.refusal
    }

    /// Saves and deletes subscriptions.
    @discardableResult
    public func modifySubscriptions(
        saving subscriptionsToSave: [CKSubscription], deleting subscriptionIDsToDelete: [CKSubscription.ID]
    ) async throws -> (
        saveResults: [CKSubscription.ID: Result<CKSubscription, any Error>],
        deleteResults: [CKSubscription.ID: Result<Void, any Error>]
    ) {
        throw Self.refusal
    }

    // MARK: Completion handlers

    /// Saves a subscription.
    @preconcurrency
    public func save(
        _ subscription: CKSubscription, completionHandler: @escaping @Sendable (CKSubscription?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.save(subscription) }) { completionHandler(try? $0.get(), $0.failure) }
    }

    /// Fetches a subscription.
    @preconcurrency
    public func fetch(
        withSubscriptionID subscriptionID: CKSubscription.ID,
        completionHandler: @escaping @Sendable (CKSubscription?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.subscription(for: subscriptionID) }) {
            completionHandler(try? $0.get(), $0.failure)
        }
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
        Callbacks.complete({ try await self.allSubscriptions() }) { completionHandler(try? $0.get(), $0.failure) }
    }

    /// Deletes a subscription.
    @preconcurrency
    public func delete(
        withSubscriptionID subscriptionID: CKSubscription.ID,
        completionHandler: @escaping @Sendable (CKSubscription.ID?, (any Error)?) -> Void
    ) {
        Callbacks.complete({ try await self.deleteSubscription(withID: subscriptionID) }) {
            completionHandler(try? $0.get(), $0.failure)
        }
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
