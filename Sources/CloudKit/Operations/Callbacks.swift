import Foundation

/// Where the SDK calls an app's blocks: threads of its own, on which a block may wait for as long as it likes.
enum Callbacks {
    private static let queue = DispatchQueue(label: "zonekeeper.cloudkit.callbacks", attributes: .concurrent)

    /// Calls a block and comes back when it has returned.
    static func run(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            queue.async {
                body()
                continuation.resume()
            }
        }
    }

    /// Does work in a task of its own and hands its result to a completion handler.
    static func complete<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value,
        _ handler: @escaping @Sendable (Result<Value, any Error>) -> Void
    ) {
        Task {
            let result: Result<Value, any Error>
            do {
                result = .success(try await work())
            } catch {
                result = .failure(error)
            }
            await run { handler(result) }
        }
    }
}
