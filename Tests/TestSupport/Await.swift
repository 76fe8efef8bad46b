import NIOCore
import NIOPosix

/// Asks for a state again and again until it is as wanted.
///
/// Only here do tests wait for something that does not report its changes.
///
/// - Parameters:
///   - what: what is waited for, for the failure.
///   - bound: a time in which it comes to be on the slowest machine. No test passes or fails by how long it takes
///     within it.
///   - observe: asks for the state. An error is never as wanted: a node may be away.
/// - Returns: the state that was wanted.
/// - Throws: `TestFailure` with what was seen last; `CancellationError` where the task was cancelled.
@discardableResult
package func awaitState<State>(
    _ what: String, within bound: Duration = .seconds(180), of observe: () async throws -> State,
    until isWanted: (State) throws -> Bool = { _ in true }
) async throws -> State {
    let end = ContinuousClock.now + bound
    var seen = ""
    repeat {
        try Task.checkCancellation()
        do {
            let state = try await observe()
            if try isWanted(state) { return state }
            seen = String("\(state)".suffix(4_000))
        } catch {
            seen = "\(error)"
        }
        try await MultiThreadedEventLoopGroup.singleton.next().scheduleTask(in: .milliseconds(20)) {}.futureResult.get()
    } while ContinuousClock.now < end
    throw TestFailure("\(what): never within \(bound); last seen: \(seen)")
}

/// Asks again and again until something is true; errors are as false.
/// - Throws: `TestFailure` where it never is; `CancellationError` where the task was cancelled.
package func awaitTrue(
    _ what: String, within bound: Duration = .seconds(180), _ isTrue: () async throws -> Bool
) async throws {
    try await awaitState(what, within: bound, of: isTrue) { $0 }
}
