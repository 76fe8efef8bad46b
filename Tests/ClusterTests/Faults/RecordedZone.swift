import HistoryChecks
import Synchronization

/// One zone's history, as all clients write it down.
final class RecordedZone: Sendable {
    typealias Calls = History<ZoneModel.Operation, ZoneModel.Outcome>

    struct State {
        var history = Calls()
        var sightings = Sightings<[String: String]>()
        var complaints: [String] = []
    }

    let name: String
    let isDefault: Bool
    let records: [String]
    private let start = ContinuousClock.now
    private let state = Mutex(State())

    init(name: String, isDefault: Bool, records: [String]) {
        self.name = name
        self.isDefault = isDefault
        self.records = records
    }

    /// Milliseconds since the beginning, for reports.
    private var now: Int64 { (ContinuousClock.now - start).components.seconds * 1_000 + milliseconds }
    private var milliseconds: Int64 { (ContinuousClock.now - start).components.attoseconds / 1_000_000_000_000_000 }

    func begin(_ operation: ZoneModel.Operation, client: Int) -> Calls.CallID {
        state.withLock { $0.history.begin(operation, client: client, at: now) }
    }

    func end(_ id: Calls.CallID, _ outcome: ZoneModel.Outcome) {
        state.withLock { $0.history.end(id, outcome, at: now) }
    }

    func withdraw(_ id: Calls.CallID) { state.withLock { $0.history.withdraw(id) } }

    /// A record was shown.
    func see(_ name: String, _ copy: RecordCopy?, client: Int) {
        guard let copy else { return }
        state.withLock { state in
            let complaint = state.sightings.see(name, copy.version, copy.content, by: "client \(client)")
            if let complaint { state.complaints.append(complaint) }
        }
    }

    /// Something that no service may answer.
    func complain(_ complaint: String) { state.withLock { $0.complaints.append(complaint) } }

    /// What was written down so far.
    var calls: Calls { state.withLock { $0.history } }
    var complaints: [String] { state.withLock { $0.complaints } }

    /// The zone as it was when the recording began.
    var model: ZoneModel { ZoneModel(isDefault ? .unwritten(isDefault: true) : .made) }
}
