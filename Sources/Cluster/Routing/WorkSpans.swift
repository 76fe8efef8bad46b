import PeerTransport
import RaftCore
package import Telemetry
import Tracing
package import Wire

// The parts of a recorded request's work that this target knows. What is not recorded costs a look at an optional.

extension NodeTracer {
    /// A part of the work of the span in this task, or of `parent`, for a group.
    func part(_ name: String, of parent: TraceContext?, in group: GroupID) -> RecordedSpan? {
        let span = part(name, of: parent)
        span?.attributes["zonekeeper.group"] = Int64(clamping: group.rawValue)
        return span
    }

    /// A part of the work of a span; nil where there is none.
    func below(_ place: TraceContext?, _ name: String) -> RecordedSpan? { place.flatMap { part(name, of: $0) } }

    /// What this node does as a leader for another node's request, which then goes on below it; nil where that is not
    /// recorded.
    func serving(_ request: inout NodeRequest, from node: NodeID) -> RecordedSpan? {
        func begin(_ name: String, _ group: GroupID, _ origin: inout RequestOrigin) -> RecordedSpan? {
            guard let place = origin.place, let span = part(name, of: place, .server) else { return nil }
            span.attributes["zonekeeper.group"] = Int64(clamping: group.rawValue)
            span.attributes["zonekeeper.peer"] = Int64(clamping: node.rawValue)
            origin.place = span.place
            return span
        }
        switch request {
        case .propose(let group, let command, var origin):
            guard let span = begin("propose", group, &origin) else { return nil }
            request = .propose(group, command: command, origin: origin)
            return span
        case .read(let group, let bytes, var terms):
            guard let span = begin("read", group, &terms.origin) else { return nil }
            request = .read(group, request: bytes, terms)
            return span
        default: return nil
        }
    }
}

/// What a recorded command goes through on its leader, one span after the other.
struct CommandSteps: Sendable {
    /// The span that the command belongs to.
    let place: TraceContext
    /// From the append until a majority has it.
    let replicating: RecordedSpan
}

extension NodeTracer {
    /// Begins what follows a command's append: its way to this node's disk, and to a majority.
    func steps(of proposal: Replica.Proposal, at index: LogIndex, in replica: Replica) -> CommandSteps? {
        guard let place = proposal.place, let syncing = part("fsync", of: place),
            let replicating = part("replicate", of: place)
        else { return nil }
        replica.syncing.append((index, syncing))
        return CommandSteps(place: place, replicating: replicating)
    }
}

extension Replica.InFlight {
    /// A majority has the command: from here on it waits for its transaction, and for the end of that.
    func applying(_ tracer: NodeTracer?) -> Completion {
        guard let steps else { return completion }
        steps.replicating.finish()
        let span = tracer?.part("apply", of: steps.place)
        return { [completion] result in
            span?.finish()
            completion(result)
        }
    }
}

extension Replica {
    /// The log's file was synced so far.
    func didSync(through index: LogIndex) {
        while let first = syncing.first, first.index <= index { syncing.removeFirst().span.finish() }
    }
}

/// Its halves.
extension TraceID: WireValue {
    package func write(_ number: Int, to writer: inout WireWriter) { writer.parts(number, high, low) }

    package init(field reader: inout WireReader) throws(WireError) {
        let number = reader.number
        let (high, low): (UInt64, UInt64) = try reader.parts { ($0, $1) }
        guard let id = TraceID(high: high, low: low) else { throw .invalidValue(field: number) }
        self = id
    }
}

extension TraceContext: WireValue {
    package func write(_ number: Int, to writer: inout WireWriter) { writer.parts(number, trace, span, isSampled) }

    package init(field reader: inout WireReader) throws(WireError) {
        let number = reader.number
        let place: TraceContext = try reader.parts { TraceContext(trace: $0, span: $1, isSampled: $2) }
        guard place.span != 0 else { throw .invalidValue(field: number) }
        self = place
    }
}
