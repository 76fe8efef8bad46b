import Foundation
import HistoryChecks
import NIOCore
import RaftCore
import RecordModel
import Synchronization
import TestSupport

/// How often each kind of answer came.
final class AnswerTally: Sendable {
    private let counts = Mutex<[String: Int]>([:])

    func count(_ kind: String) { counts.withLock { $0[kind, default: 0] += 1 } }

    /// Waits until so many more answers came, or of those whose kind begins so.
    func awaitAnswers(_ count: Int, of kind: String = "") async throws {
        func total() -> Int {
            counts.withLock { counts in
                counts.filter { $0.key.hasPrefix(kind) && !$0.key.hasPrefix("no answer") }.values.reduce(0, +)
            }
        }
        let before = total()
        try await awaitState("\(count) more answers \(kind) beyond \(before)") {
            total()
        } until: {
            $0 >= before + count
        }
    }

    var described: String {
        let sorted = counts.withLock { $0 }.sorted { $0.key < $1.key }
        return sorted.map { "\($0.value) of \($0.key)" }.joined(separator: ", ")
    }
}

/// What clients of a live run share: how a request is sent, and how its answers are read.
struct FaultClient {
    let number: Int
    let client: TestClient
    /// The path of an action, such as `records/modify`.
    let path: @Sendable (String) -> String
    let nodes: Int
    let tally: AnswerTally
    var generator: SplitMix64
    private var sent = 0
    /// Whether what was asked last cannot have come to any node.
    private(set) var wasNeverSent = false

    init(
        number: Int, client: TestClient, nodes: Int, seed: UInt64, tally: AnswerTally,
        path: @escaping @Sendable (String) -> String
    ) {
        self.tally = tally
        self.number = number
        self.client = client
        self.path = path
        self.nodes = nodes
        generator = SplitMix64(seed: seed &+ UInt64(number) &* 7_919)
    }

    mutating func roll(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &generator) }

    /// A text that nobody else ever writes.
    mutating func value() -> String {
        sent += 1
        return "c\(number)-\(sent)"
    }

    /// One sending to one node; nil where no answer came.
    mutating func ask(_ action: String, _ body: String, node: Int, key: String? = nil) async -> TestClient.Answer? {
        do {
            let headers = key.map { [("Idempotency-Key", $0)] } ?? []
            let answer = try await client.post(path(action), body, node: node, headers: headers)
            tally.count("\(answer.status) \(answer.json["serverErrorCode"]?.string ?? "")")
            wasNeverSent = false
            return answer
        } catch {
            wasNeverSent = (error as? IOError)?.errnoCode == ECONNREFUSED
            tally.count("no answer (\(type(of: error)))")
            return nil
        }
    }

    /// A UUID of version 7.
    mutating func idempotencyKey() -> String {
        let time = UInt64(Date().timeIntervalSince1970 * 1_000)
        let (high, low) = (generator.next(), generator.next())
        func hex(_ number: UInt64, _ digits: Int) -> String {
            let text = String(number & (1 << UInt64(digits * 4) - 1), radix: 16)
            return String(repeating: "0", count: digits - text.count) + text
        }
        return [
            hex(time >> 16, 8), hex(time, 4), "7" + hex(high, 3), "8" + hex(high >> 16, 3), hex(low, 12),
        ].joined(separator: "-")
    }

    /// Sends a change, and again to the next node under the same key, until the answer is final or the client gives up.
    /// - Returns: the first final answer with how often it was sent; nil where nobody knows what became of it, or where
    ///   `wasNeverSent`.
    mutating func change(
        _ action: String, _ body: String, isFinal: (TestClient.Answer) -> Bool
    ) async -> (answer: TestClient.Answer, attempts: Int)? {
        let key = idempotencyKey()
        // Every third client never asks again, so that unknown outcomes stay.
        let attemptsMax = number.isMultiple(of: 3) ? 1 : 20
        var node = roll(nodes)
        var attempts = 0
        for _ in 0..<attemptsMax {
            let answer = await ask(action, body, node: node, key: key)
            if !wasNeverSent { attempts += 1 }
            if let answer, isFinal(answer) { return (answer, attempts) }
            node = (node + 1) % nodes
            try? await client.awaitAnyLive()
        }
        wasNeverSent = attempts == 0
        return nil
    }
}

extension RecordCopy {
    /// A record of an answer; nil for one that is not there.
    init?(_ json: JSONValue) {
        guard let version = Version(json["recordChangeTag"]?.string), case .object(let fields)? = json["fields"] else {
            return nil
        }
        var content: [String: String] = [:]
        for field in fields {
            switch field.value["value"] {
            case .string(let text)?: content[field.key] = text
            case .integer(let number)?: content[field.key] = "\(number)"
            default: return nil
            }
        }
        self.init(content, version)
    }
}

extension Version {
    /// A change tag's text.
    init?(_ text: String?) {
        guard let tag = text.flatMap({ ChangeTag($0) }) else { return nil }
        self.init(tag.incarnation, tag.sequence)
    }
}
