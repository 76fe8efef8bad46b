import Foundation
import RecordModel
import Synchronization
import TestSupport

/// A tenant who does nothing wrong: saves one record after another by the nodes in turn, each until it is acknowledged.
final class Tenant: Sendable {
    private struct State {
        /// What was acknowledged last of each record.
        var acknowledged: [String: Int] = [:]
        var saved = 0
        var retried = 0
        var complaints: [String] = []
    }

    private static let records = 50

    private let client: TestClient
    private let (modify, lookup): (String, String)
    private let state = Mutex(State())

    /// How many saves were acknowledged.
    var saved: Int { state.withLock(\.saved) }
    /// How many tries were answered with "try again", or not at all.
    var retried: Int { state.withLock(\.retried) }
    /// What no save may be answered.
    var complaints: [String] { state.withLock(\.complaints) }

    /// - Parameter cluster: with a container, a user and tokens that the others do not have.
    init(_ cluster: ProcessCluster) {
        client = cluster.client
        (modify, lookup) = (cluster.path("records/modify"), cluster.path("records/lookup"))
    }

    func run() async {
        var (number, node) = (0, 0)
        while !Task.isCancelled {
            number += 1
            let name = "light-\(number % Self.records)"
            let body =
                #"{"operations": [{"operationType": "forceReplace", "record": {"recordName": "\#(name)", "recordType": "Note", "#
                + #""fields": {"number": {"value": \#(number)}}}}]}"#
            while !Task.isCancelled {
                node = (node + 1) % 3
                let answer = try? await client.post(modify, body, node: node)
                if note(answer, name, number) { break }
            }
        }
    }

    /// - Returns: whether the save is acknowledged.
    private func note(_ answer: TestClient.Answer?, _ name: String, _ number: Int) -> Bool {
        state.withLock { state in
            // The limit of its own rate is no complaint.
            guard let answer, ![429, 503].contains(answer.status) else {
                state.retried += 1
                return false
            }
            guard answer.json["records"]?.array?.first?["recordChangeTag"]?.string != nil else {
                state.complaints.append("\(answer)")
                return true
            }
            state.acknowledged[name] = number
            state.saved += 1
            return true
        }
    }

    /// Requires that each record is as it was acknowledged last, or later.
    func requireAll() async throws {
        for (name, number) in state.withLock(\.acknowledged).sorted(by: { $0.key < $1.key }) {
            let body = #"{"records": [{"recordName": "\#(name)"}]}"#
            try await awaitState("\(name) is there") {
                try await client.post(lookup, body, node: number % 3)
            } until: { answer in
                guard answer.status == 200 else { return false }
                let value = answer.json["records"]?.array?.first?["fields"]?["number"]?["value"]
                guard case .integer(let stored)? = value else { throw TestFailure("\(name): \(answer)") }
                try require(stored >= number, "\(name) was acknowledged with \(number), and has \(stored)")
                return true
            }
        }
    }
}
