import Dispatch

/// What a fetch and a send of an engine have in common: the delegate, and the account.
///
/// Where the state changed it is told before the next event and the next request. It changes by what an event tells
/// only after the event: an app that ends in between gets the event again, or sends the change again, and loses
/// nothing.
struct SyncSession {
    let engine: CKSyncEngine
    /// Nil when the app has let go of it: nothing is done then.
    let delegate: (any CKSyncEngineDelegate)?

    var state: CKSyncEngine.State { engine.state }

    // MARK: Events

    /// Asks the delegate, or tells it something: in a task that is not cancelled with the engine's work. What the
    /// delegate stores then is not told again, and it could not say that it failed.
    func asking<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value {
        await Task(executorPreference: engine.delegateExecutor, operation: body).value
    }

    /// Tells the state if it changed since it was told last.
    func tellState() async {
        guard let delegate, let serialization = state.takeUntold() else { return }
        await asking {
            await delegate.handleEvent(.stateUpdate(.init(stateSerialization: serialization)), syncEngine: engine)
        }
    }

    /// Tells what happened, after the state if that changed.
    func tell(_ event: CKSyncEngine.Event) async {
        guard let delegate else { return }
        await tellState()
        await asking { await delegate.handleEvent(event, syncEngine: engine) }
    }

    // MARK: Work

    /// Fetches which zones changed, and the records of those in scope.
    /// - Throws: the first error that says something about more than one zone; else `partialFailure` with those of
    ///   single zones, which are fetched again later.
    func fetch(_ context: CKSyncEngine.FetchChangesContext) async throws(CKError) {
        let will = CKSyncEngine.Event.willFetchChanges(.init(context: context))
        func did(_ error: CKError?) -> CKSyncEngine.Event { .didFetchChanges(.init(context: context, error: error)) }
        let group = context.options.operationGroup
        guard let service = try await service(group, orTell: { [will, did($0)] }) else { return }
        var fetch = SyncFetch(session: self, service: service, context: context)
        await tell(will)
        let failure = await failure { () async throws(CKError) in try await fetch.run() }
        await tell(did(failure))
        await tellState()
        if let failure = failure ?? CKError.partialFailure(fetch.errors) { throw failure }
    }

    /// Sends pending changes of zones, then of records, until there are no more.
    /// - Throws: an error of the whole, after which everything that was not sent is still pending; `partialFailure`
    ///   with the errors of single items.
    func send(_ context: CKSyncEngine.SendChangesContext) async throws(CKError) {
        let will = CKSyncEngine.Event.willSendChanges(.init(context: context))
        func did(_ error: CKError?) -> CKSyncEngine.Event { .didSendChanges(.init(context: context, error: error)) }
        let group = context.options.operationGroup
        guard let service = try await service(group, orTell: { [will, did($0)] }) else { return }
        guard state.hasPending else { return }
        var send = SyncSend(session: self, service: service, context: context)
        await tell(will)
        let failure = await failure { () async throws(CKError) in try await send.run() }
        await tell(did(failure))
        await tellState()
        if let failure = failure ?? CKError.partialFailure(send.errors) { throw failure }
    }

    /// The error that work ends with; nil where it succeeds.
    func failure(_ body: () async throws(CKError) -> Void) async -> CKError? {
        do throws(CKError) {
            try await body()
            return nil
        } catch {
            return error
        }
    }

    // MARK: The account

    /// The same as `service(_:)`; events tell of an error that is no matter of time, as nobody may await the work.
    private func service(
        _ group: CKOperationGroup?, orTell events: (CKError) -> [CKSyncEngine.Event]
    ) async throws(CKError) -> DatabaseService? {
        do throws(CKError) {
            return try await service(group)
        } catch {
            if !error.isKeptByEngine { for event in events(error) { await tell(event) } }
            throw error
        }
    }

    /// The database as the group says, for the user who is signed in; nil if no user is.
    /// - Throws: where the server cannot be asked.
    private func service(_ group: CKOperationGroup?) async throws(CKError) -> DatabaseService? {
        guard delegate != nil else { return nil }
        guard engine.database.databaseScope != .public else {
            throw CKError(
                .invalidArguments, reason: "a sync engine takes a private or a shared database, not the public one")
        }
        var service = engine.database.configured
        // What is fetched and sent is one user's, even if another signs in meanwhile.
        service.account = try service.account.pinned()
        let (session, _) = try service.account.session()
        service = service.grouped(group)
        let user: CKRecord.ID?
        do throws(CKError) {
            user = try await service.userRecordID()
        } catch {
            // A session that the server refuses may have expired: that the user comes back is more likely than not, and
            // what is pending would be lost with a sign-out.
            guard error.code == .notAuthenticated, !session.hasToken else { throw error }
            user = nil
        }
        await follow(user)
        service.user = user?.recordName
        return user == nil ? nil : service
    }

    /// Begins with nothing where the user is not the one of the state.
    private func follow(_ user: CKRecord.ID?) async {
        let previous = state.current.user.map { CKRecord.ID(recordName: $0) }
        let change: CKSyncEngine.Event.AccountChange.ChangeType
        switch (previous, user) {
        case (let previous?, let user?):
            if previous == user { return }
            change = .switchAccounts(previousUser: previous, currentUser: user)
        case (nil, let user?):
            change = .signIn(currentUser: user)
        case (let previous?, nil): change = .signOut(previousUser: previous)
        case (nil, nil): return
        }
        state.update { state in
            // What the app added before the first start is the first user's.
            if previous == nil { state.user = user?.recordName } else { state.begin(with: user?.recordName) }
        }
        // The state of the new user is told after the event: the app has to learn that the data is another user's.
        guard let delegate else { return }
        await asking { await delegate.handleEvent(.accountChange(.init(changeType: change)), syncEngine: engine) }
        await tellState()
    }
}

extension DatabaseService {
    /// The same with the defaults of a group, where there is one.
    func grouped(_ group: CKOperationGroup?) -> DatabaseService {
        guard let group else { return self }
        var service = self
        service.times = CallTimes(group.defaultConfiguration).filled(from: times)
        return service
    }
}

/// Where an engine's delegate is called.
///
/// Child tasks of the delegate run there too; a task that it begins by `Task { }` does not. So a call can tell whether
/// the delegate waits for it, which would be for ever.
final class DelegateExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Whether the calling task is the delegate's, or a child task of it.
    var isCurrent: Bool { withUnsafeCurrentTask { $0?.unownedTaskExecutor } == asUnownedTaskExecutor() }
}
