package import Admission
import Authorization
import Cluster
import Directory
import PeerTransport
package import RecordModel
import Synchronization
import Telemetry

/// Where the parts of a request's work note what the log is to say of it. Any thread.
package final class RequestNote: Sendable {
    private struct State {
        var entry = RequestEntry.blank
        /// Why the first item failed that failed by itself.
        var itemFailure: ServiceError?
        /// Why the request failed as a whole.
        var failure: RequestFailure?
    }

    private let state = Mutex(State())
    private let isOn: Bool

    /// - Parameter isOn: whether anybody wants to know; if not, nothing is noted.
    package init(isOn: Bool = true) { self.isOn = isOn }

    /// Takes note of something.
    package func note(_ change: (inout RequestEntry) -> Void) {
        if isOn { state.withLock { change(&$0.entry) } }
    }

    /// Takes note of what is asked for, as the log names it; what is never noted is not logged.
    package func asks(_ operation: String, _ group: OperationGroup) {
        note { entry in
            entry.operation = operation
            entry.group = group
        }
    }

    /// Takes note of the zone, and of a record type and how many records where the request says so.
    package func about(zone: String, recordType: String? = nil, records: Int = 0) {
        note { entry in
            entry.zone = zone
            if let recordType { entry.recordType = recordType }
            entry.records = records
        }
    }

    /// Takes note of who asks.
    package func admitted(_ admitted: Admitted) {
        note { entry in
            entry.user = admitted.caller.isAdministrator ? "" : admitted.caller.user ?? ""
            // Ids and names that exist already: a request makes no text for the log.
            entry.credential = admitted.administrator ?? admitted.keyID ?? admitted.apiToken?.id ?? ""
        }
    }

    /// Takes note of an item that failed by itself.
    package func itemFailed(_ error: ServiceError) {
        guard isOn else { return }
        state.withLock { state in
            if state.entry.failedItems == 0 { state.itemFailure = error }
            state.entry.failedItems += 1
        }
    }

    /// Takes note of why the request failed as a whole.
    package func failed(_ error: RequestFailure) { if isOn { state.withLock { $0.failure = error } } }

    /// Takes what was noted, as an entry of the log, with the nodes that the task asked; nil for what is not logged.
    package func takeEntry(of id: UUIDv7) -> RequestEntry? {
        guard isOn else { return nil }
        return state.withLock { state in
            guard !state.entry.operation.isEmpty else { return nil }
            // Moved, as a copy would count all texts once more.
            var entry = RequestEntry.blank
            swap(&entry, &state.entry)
            entry.id = id
            entry.nodes = RequestTrace.current?.nodes.map(\.rawValue) ?? []
            entry.trace = RequestTrace.current?.place?.trace
            entry.itemCode = state.itemFailure?.code
            if let failure = state.failure {
                entry.code = failure.error.code
                entry.refusal = RequestRefusal(failure)
            } else if let error = state.itemFailure {
                entry.refusal = RequestRefusal(RequestFailure(error))
            }
            return entry
        }
    }
}
