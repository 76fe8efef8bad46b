/// Runs tests, and something after them whether or not they threw.
package func finishing(
    _ tests: @Sendable () async throws -> Void, with end: @Sendable () async -> Void
) async throws {
    let outcome: (any Error)?
    do {
        try await tests()
        outcome = nil
    } catch {
        outcome = error
    }
    await end()
    if let outcome { throw outcome }
}
