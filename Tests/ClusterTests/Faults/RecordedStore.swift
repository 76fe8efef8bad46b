import HistoryChecks
import Synchronization

/// The key-value store's history.
final class RecordedStore: Sendable {
    typealias Calls = History<KeyValueModel.Operation, KeyValueModel.Outcome>

    let keys = (0..<8).map { "k\($0)" }
    private let state = Mutex((history: Calls(), complaints: [String]()))

    func begin(_ operation: KeyValueModel.Operation, client: Int) -> Calls.CallID {
        state.withLock { $0.history.begin(operation, client: client) }
    }

    func end(_ id: Calls.CallID, _ outcome: KeyValueModel.Outcome) {
        state.withLock { $0.history.end(id, outcome) }
    }

    func withdraw(_ id: Calls.CallID) { state.withLock { $0.history.withdraw(id) } }

    /// Something that no service may answer.
    func complain(_ complaint: String) { state.withLock { $0.complaints.append(complaint) } }

    var calls: Calls { state.withLock(\.history) }
    var complaints: [String] { state.withLock(\.complaints) }
}
