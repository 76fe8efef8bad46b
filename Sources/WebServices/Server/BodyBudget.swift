import Hummingbird
import NIOCore
import RecordModel
import Service
import Synchronization

/// For whom a node holds bytes.
struct ByteHolder: Sendable {
    /// Whose requests they belong to; nil for administration and signing in.
    var container: String?
    /// Where the client is.
    var address: ClientAddress
}

extension ByteHolder {
    init(_ call: WebCall, container: String?) {
        self.init(container: container, address: ClientAddress(text: call.address))
    }
}

/// The bytes of request bodies that a node holds at once. They count as they arrive, so that a slow sender takes only
/// what it sent.
///
/// Once half of what may be held is taken, no container and no address gets more than a quarter: one alone may have
/// much, and never keeps the others out.
final class BodyBudget: Sendable {
    fileprivate struct State {
        var total = 0
        var byContainer: [String: Int] = [:]
        var byAddress: [ClientAddress: Int] = [:]
    }

    private let bytesMax: Int
    private let state = Mutex(State())

    /// How long a body may take in all, however steadily it comes.
    static let secondsMax: Int64 = 60

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Reads a body. Its bytes count until `release` is called with their number.
    /// - Throws: `BAD_REQUEST` with 413 or 408 for one that is too large or too slow, `TRY_AGAIN_LATER` where the node
    ///   holds as much as it may.
    func read(
        _ request: Request, bytesMax limit: Int, for holder: ByteHolder
    ) async throws(RequestFailure) -> [UInt8] {
        // Looking for one field is cheaper than joining all of its name.
        let length = request.headers.first { $0.name == .contentLength }
        if let length, let bytes = Int(length.value), bytes > limit {
            throw Self.tooLarge(limit)
        }
        let end = NIODeadline.now() + .seconds(Self.secondsMax)
        var bytes: [UInt8] = []
        var failure: RequestFailure?
        do {
            for try await buffer in request.body {
                let count = buffer.readableBytes
                if bytes.count + count > limit { failure = Self.tooLarge(limit) }
                if failure == nil, !take(count, for: holder) { failure = Self.full }
                if failure == nil, NIODeadline.now() > end {
                    release(count, of: holder)
                    failure = Self.tooSlow
                }
                if failure != nil { break }
                bytes.append(contentsOf: buffer.readableBytesView)
            }
        } catch {
            failure = RequestFailure(.badRequest, "the request's body did not arrive: \(error)")
        }
        if let failure {
            release(bytes.count, of: holder)
            throw failure
        }
        return bytes
    }

    func release(_ count: Int, of holder: ByteHolder) {
        guard count > 0 else { return }
        state.withLock { $0.add(-count, for: holder) }
    }

    /// Counts bytes that the node holds; `release` must follow. False, and nothing is counted, where it holds as many
    /// as it may.
    func take(_ count: Int, for holder: ByteHolder) -> Bool {
        state.withLock { state in
            let total = state.total + count
            let isShared = total > bytesMax / 2
            if total > bytesMax || isShared && state.most(of: holder) + count > bytesMax / 4 { return false }
            state.add(count, for: holder)
            return true
        }
    }

    private static func tooLarge(_ limit: Int) -> RequestFailure {
        RequestFailure(
            .badRequest, "the body is larger than \(limit) bytes; send less in one request", details: .bodyTooLarge)
    }

    private static let tooSlow = RequestFailure(
        .badRequest, "the body took longer than \(secondsMax) s; send less in one request", details: .bodyTooSlow)

    private static let full = RequestFailure(
        ServiceError.nothingDone("this node holds as many request bodies as it may, or as many of yours"))
}

extension BodyBudget.State {
    /// What the holder's container or address has, whichever has more.
    func most(of holder: ByteHolder) -> Int {
        max(holder.container.flatMap { byContainer[$0] } ?? 0, byAddress[holder.address] ?? 0)
    }

    mutating func add(_ count: Int, for holder: ByteHolder) {
        total += count
        if let container = holder.container { Self.add(count, to: &byContainer[container]) }
        Self.add(count, to: &byAddress[holder.address])
    }

    private static func add(_ count: Int, to entry: inout Int?) {
        let sum = (entry ?? 0) + count
        precondition(sum >= 0, "more bytes were given back than were taken")
        entry = sum == 0 ? nil : sum
    }
}

/// Bytes that a node holds for a client, counted in its `BodyBudget` until they are let go.
final class HeldBytes: Sendable {
    private let count: Int
    private let budget: BodyBudget
    private let holder: ByteHolder

    /// Nil where the node holds as many as it may.
    init?(_ count: Int, in budget: BodyBudget, for holder: ByteHolder) {
        guard budget.take(count, for: holder) else { return nil }
        self.count = count
        self.budget = budget
        self.holder = holder
    }

    deinit { budget.release(count, of: holder) }
}
