import Hummingbird
import NIOCore
import RecordModel
import Service
import Synchronization

/// The bytes of request bodies that a node holds at once. They count as they arrive, so that a slow sender takes only
/// what it sent.
final class BodyBudget: Sendable {
    private let bytesMax: Int
    private let held = Atomic<Int>(0)

    /// How long a body may take in all, however steadily it comes.
    static let secondsMax: Int64 = 60

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Reads a body. Its bytes count until `release` is called with their number.
    /// - Throws: `BAD_REQUEST` with 413 or 408 for one that is too large or too slow, `TRY_AGAIN_LATER` where the node
    ///   holds as much as it may.
    func read(_ request: Request, bytesMax limit: Int) async throws(RequestFailure) -> [UInt8] {
        if let text = request.headers[.contentLength], let length = Int(text), length > limit {
            throw Self.tooLarge(limit)
        }
        let end = NIODeadline.now() + .seconds(Self.secondsMax)
        var bytes: [UInt8] = []
        var failure: RequestFailure?
        do {
            for try await buffer in request.body {
                let count = buffer.readableBytes
                if bytes.count + count > limit { failure = Self.tooLarge(limit) }
                if failure == nil, !take(count) { failure = Self.full }
                if failure == nil, NIODeadline.now() > end {
                    release(count)
                    failure = Self.tooSlow
                }
                if failure != nil { break }
                bytes.append(contentsOf: buffer.readableBytesView)
            }
        } catch {
            failure = RequestFailure(.badRequest, "the request's body did not arrive: \(error)")
        }
        if let failure {
            release(bytes.count)
            throw failure
        }
        return bytes
    }

    /// Gives back what a body took.
    func release(_ count: Int) { held.subtract(count, ordering: .relaxed) }

    /// Counts bytes that the node holds; `release` must follow. False, and nothing is counted, where it holds as many
    /// as it may.
    func take(_ count: Int) -> Bool {
        if held.add(count, ordering: .relaxed).newValue <= bytesMax { return true }
        release(count)
        return false
    }

    private static func tooLarge(_ limit: Int) -> RequestFailure {
        RequestFailure(
            .badRequest, "the body is larger than \(limit) bytes; send less in one request", details: .bodyTooLarge)
    }

    private static let tooSlow = RequestFailure(
        .badRequest, "the body took longer than \(secondsMax) s; send less in one request", details: .bodyTooSlow)

    private static let full = RequestFailure(
        ServiceError.nothingDone("this node holds as many request bodies as it may"))
}

/// Bytes that a node holds for a client, counted in its `BodyBudget` until they are let go.
final class HeldBytes: Sendable {
    private let count: Int
    private let budget: BodyBudget

    /// Nil where the node holds as many as it may.
    init?(_ count: Int, in budget: BodyBudget) {
        guard budget.take(count) else { return nil }
        self.count = count
        self.budget = budget
    }

    deinit { budget.release(count) }
}
