import Dispatch
import Foundation
import RecordModel
import Synchronization

@testable import UbiquitousKeyValueStore

/// A server by the twin's rules that several stores in this process reach, or do not.
final class FakeCloud: Sendable {
    struct Contents {
        var server = TwinServer()
        var isOnline = true
        /// Answers that get lost on their way; the server did what it was asked.
        var answersToLose = 0
        var pauseMilliseconds: Int64?
        var setRequests = 0
        var watchers: [CheckedContinuation<Void, Never>] = []
        /// Requests that are on their way for as long as the cloud is held.
        var isHeld = false
        var held: [CheckedContinuation<Void, Never>] = []
        var holders: [(count: Int, CheckedContinuation<Void, Never>)] = []
    }

    private let contents = Mutex(Contents())

    func with<Value: Sendable>(_ body: (inout Contents) -> Value) -> Value {
        contents.withLock { body(&$0) }
    }

    func visible(_ user: String) -> [String: PropertyValue] {
        with { contents in
            Dictionary(
                uniqueKeysWithValues: (contents.server.stores[user]?.visible ?? [:]).map { ($0.key.text, $0.value) })
        }
    }

    func set(_ values: [String: PropertyValue?], user: String) {
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            let now = with { $0.server.stores[user]?.entries[PreferenceKey(key)] }
            let expected = now.flatMap { $0.value == nil ? nil : $0.version } ?? PreferenceCopy.absent
            let batch = PreferenceBatch(
                id: UUID().uuidString, writes: [.init(key: PreferenceKey(key), value: value, expected: expected)])
            _ = with { $0.server.set(batch, user: user, device: "elsewhere") }
        }
        wakeWatchers()
    }

    /// Keeps requests from coming back until `release`; what becomes of them is decided when they begin.
    func hold() { with { $0.isHeld = true } }

    /// Returns when so many requests are held.
    func awaitHeld(_ count: Int) async {
        await withCheckedContinuation { continuation in
            with { $0.holders.append((count, continuation)) }
            wakeHolders()
        }
    }

    func release() {
        let held = with { contents in
            contents.isHeld = false
            defer { contents.held = [] }
            return contents.held
        }
        for request in held { request.resume() }
    }

    fileprivate func pass() async {
        await withCheckedContinuation { continuation in
            let isHeld = with { contents in
                if contents.isHeld { contents.held.append(continuation) }
                return contents.isHeld
            }
            if isHeld { wakeHolders() } else { continuation.resume() }
        }
    }

    private func wakeHolders() {
        let woken = with { contents in
            let count = contents.held.count
            let woken = contents.holders.filter { $0.count <= count }.map(\.1)
            contents.holders.removeAll { $0.count <= count }
            return woken
        }
        for holder in woken { holder.resume() }
    }

    /// Returns when something may have changed, or the task is cancelled.
    fileprivate func awaitNews() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isCancelled = with { contents in
                    if !Task.isCancelled { contents.watchers.append(continuation) }
                    return Task.isCancelled
                }
                if isCancelled { continuation.resume() }
            }
        } onCancel: {
            wakeWatchers()
        }
    }

    func wakeWatchers() {
        let watchers = with { contents in
            defer { contents.watchers = [] }
            return contents.watchers
        }
        for watcher in watchers { watcher.resume() }
    }
}

/// A user's session at the fake cloud.
struct FakeSession: PreferenceService {
    var cloud: FakeCloud
    var user: String
    /// Whether the server tells of changes by itself.
    var pushes = false
    var name: String { "session of \(user)" }

    private func reach() async throws(PreferenceServiceProblem) {
        let (isOnline, pause) = cloud.with { ($0.isOnline, $0.pauseMilliseconds) }
        await cloud.pass()
        if !isOnline { throw .unavailable("there is no network", retryAfterMilliseconds: nil) }
        if let pause { throw .unavailable("come back later", retryAfterMilliseconds: pause) }
    }

    func account() async throws(PreferenceServiceProblem) -> String {
        try await reach()
        return user
    }

    func changes(since token: String?, of account: String) async throws(PreferenceServiceProblem) -> PreferencePage {
        try await reach()
        precondition(account == user, "\(account)'s feed asked for with \(user)'s session")
        guard let page = cloud.with({ $0.server.changes(user: user, since: token) }) else { throw .tokenExpired }
        return page
    }

    func set(
        _ batch: PreferenceBatch, of account: String, device: String
    ) async throws(PreferenceServiceProblem) -> PreferenceUploadAnswer {
        try await reach()
        precondition(account == user, "\(account)'s values sent with \(user)'s session")
        let (answer, isLost) = cloud.with { contents in
            contents.setRequests += 1
            let answer = contents.server.set(batch, user: user, device: device)
            contents.answersToLose -= 1
            return (answer, contents.answersToLose >= 0)
        }
        cloud.wakeWatchers()
        if isLost { throw .unavailable("the connection broke", retryAfterMilliseconds: nil) }
        return answer
    }

    func watch(
        since token: String, of account: String, page: @Sendable (String, PreferencePage) async -> Bool
    ) async throws(PreferenceServiceProblem) {
        guard pushes else { throw .unavailable("the server does not push", retryAfterMilliseconds: nil) }
        var position = token
        while true {
            let found = try await changes(since: position, of: account)
            if found.changes.isEmpty {
                await cloud.awaitNews()
                if Task.isCancelled { return }
                continue
            }
            guard await page(position, found) else { return }
            position = found.token
        }
    }
}

/// A clock that a test moves.
final class ManualClock: PreferenceClock {
    private struct Timer {
        var time: Int64
        var queue: DispatchQueue
        var body: @Sendable () -> Void
    }
    private let state = Mutex((now: Int64(1_000_000), timers: [Timer]()))

    var now: Int64 { state.withLock { $0.now } }
    /// How many calls are due later.
    var timers: Int { state.withLock { $0.timers.count } }

    func after(_ milliseconds: Int64, on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.timers.append(Timer(time: $0.now + milliseconds, queue: queue, body: body)) }
    }

    /// Moves on, and does what was due.
    func advance(by milliseconds: Int64) {
        let due = state.withLock { state in
            state.now += milliseconds
            let now = state.now
            let due = state.timers.filter { $0.time <= now }.sorted { $0.time < $1.time }
            state.timers.removeAll { $0.time <= now }
            return due
        }
        for timer in due { timer.queue.sync(execute: timer.body) }
    }
}
