package import PeerTransport
package import RaftCore
import RecordModel
import Synchronization
import Telemetry
package import Wire

/// What one node asks another, beside Raft's own messages.
enum NodeRequest: Sendable {
    /// Append a command, if you lead the group.
    case propose(GroupID, command: [UInt8], origin: RequestOrigin = .none)
    /// Answer a read, if you lead the group.
    case read(GroupID, request: [UInt8], ReadTerms)
    case snapshot(SnapshotChunk)
    /// Answer for the layers above, if you lead the group.
    case confer(GroupID, request: [UInt8])
    /// Take this for the layers above.
    case tell([UInt8])
    /// Answer for the layers above, whatever you lead.
    case inquire([UInt8])
    /// Answer once you know what the directory holds.
    case catchUp
    /// Tell the members of a group, if you lead it.
    case members(GroupID)
    /// Say what you are, and what you think of me: a `Standing`.
    case introduce(Introduction)
    /// Have the directory commit that my data folder is the one that counts, in place of `previous`.
    case claim(incarnation: UInt64, previous: UInt64)

    /// The hash that your replica of the group recorded at an index.
    case stateHash(GroupID, at: LogIndex)
    /// Your replica's data differ from those of a majority.
    case distrust(GroupID, ReplicaID, at: LogIndex)
    /// How your replica of the group is: a `ReplicaCondition`.
    case condition(GroupID)

    /// Hold a file durably for a group of yours, and fetch it from one of these nodes if you lack it; where you copy
    /// that upload of mine, once that has ended.
    case holdAsset(AssetReference, GroupID, from: [NodeID], after: UploadID = .none)
    /// The bytes of a range of a file; no bytes where you do not have it whole.
    case readAsset(AssetReference, Range<UInt64>)
    /// Copy a file that comes in here, for a group of yours, from now on.
    case followUpload(UploadID, GroupID)
    /// The block of a file that comes in at you, from a place on, once it is there; or what the file is, once whole.
    case readUpload(UploadID, from: UInt64)

    /// Whether it is answered to a node whose data folder is not (yet) accepted.
    var isAllowedBeforeMembership: Bool {
        switch self {
        case .introduce, .claim: true
        default: false
        }
    }
}

/// Whose read it is that a node asks for, and how long somebody waits for it.
struct ReadTerms: Hashable, Sendable {
    var container = ""
    /// From when the request arrives; 0 where the node that asks does not say.
    var milliseconds: UInt64 = 0
    /// Whether it waits for all that the leader's log holds when it arrives, not only for what is committed.
    var isAfterLog = false
    var origin = RequestOrigin.none
}

/// The answer.
enum NodeReply: Sendable {
    case done([UInt8])
    case notLeader(hint: ReplicaID?)
    case overloaded
    case diskFull
    case superseded
    case readEnded
    case outcomeUnknown(String)
    case unavailable(String)
    case failed(String)
    case tooLarge(Oversize)
    /// The upload is over, and this file is durable here.
    case whole(AssetReference)

    /// Whether what was asked is done.
    var isDone: Bool { if case .done = self { true } else { false } }

    init(_ result: Result<[UInt8], ReplicaError>) {
        switch result {
        case .success(let bytes): self = .done(bytes)
        case .failure(.notLeader(let hint)): self = .notLeader(hint: hint)
        case .failure(.overloaded): self = .overloaded
        case .failure(.diskFull): self = .diskFull
        case .failure(.superseded): self = .superseded
        case .failure(.readEnded): self = .readEnded
        case .failure(.outcomeUnknown(let reason)): self = .outcomeUnknown(reason)
        case .failure(.unavailable(let reason)): self = .unavailable(reason)
        case .failure(.failed(let reason)): self = .failed(reason)
        case .failure(.tooLarge(let size)): self = .tooLarge(size)
        }
    }

    var result: Result<[UInt8], ReplicaError> {
        switch self {
        case .done(let bytes): .success(bytes)
        case .notLeader(let hint): .failure(.notLeader(hint: hint))
        case .overloaded: .failure(.overloaded)
        case .diskFull: .failure(.diskFull)
        case .superseded: .failure(.superseded)
        case .readEnded: .failure(.readEnded)
        case .outcomeUnknown(let reason): .failure(.outcomeUnknown(reason))
        case .unavailable(let reason): .failure(.unavailable(reason))
        case .failed(let reason): .failure(.failed(reason))
        case .tooLarge(let size): .failure(.tooLarge(size))
        case .whole: .failure(.failed("an answer about a file"))
        }
    }
}

extension NodeRequest: WireCodable {
    func encode(to writer: inout WireWriter) {
        switch self {
        case .propose(let group, let command, let origin):
            writer.field(1, group.rawValue)
            writer.field(2, command)
            origin.write(to: &writer)
        case .read(let group, let request, let terms):
            writer.field(1, group.rawValue)
            writer.field(3, request)
            writer.field(14, terms.container)
            writer.field(15, terms.milliseconds)
            writer.field(18, terms.isAfterLog)
            terms.origin.write(to: &writer)
        case .snapshot(let chunk): writer.field(4) { chunk.encode(to: &$0) }
        case .confer(let group, let request):
            writer.field(1, group.rawValue)
            writer.field(5, request)
        case .tell(let message): writer.field(6, message)
        case .inquire(let question): writer.field(20, question)
        case .catchUp: writer.field(7, true)
        case .members(let group): writer.field(8, group.rawValue)
        case .introduce(let introduction): writer.field(9) { introduction.encode(to: &$0) }
        case .claim(let incarnation, let previous):
            writer.parts(10, incarnation, previous)
        case .stateHash(let group, let index):
            writer.field(1, group.rawValue)
            writer.field(11, index.rawValue)
        case .distrust(let group, let replica, let index):
            writer.field(1, group.rawValue)
            writer.parts(12, replica, index)
        case .condition(let group): writer.field(13, group.rawValue)
        case .holdAsset(let asset, let group, let sources, let upload):
            writer.field(1, group.rawValue)
            writer.parts(16, asset, sources, upload)
        case .readAsset(let asset, let range):
            writer.parts(17, asset, range.lowerBound, range.upperBound)
        case .followUpload(let upload, let group): writer.parts(21, upload, group)
        case .readUpload(let upload, let offset): writer.parts(22, upload, offset)
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        var group = GroupID(0)
        var request: NodeRequest?
        var terms = ReadTerms()
        while let field = try reader.nextField() {
            switch field {
            case 1: group = GroupID(try reader.unsigned())
            case 2: request = .propose(group, command: try reader.array())
            case 3: request = .read(group, request: try reader.array(), terms)
            case 4: request = .snapshot(try reader.message())
            case 5: request = .confer(group, request: try reader.array())
            case 6: request = .tell(try reader.array())
            case 7: request = try reader.bool() ? .catchUp : nil
            case 8: request = .members(GroupID(try reader.unsigned()))
            case 9: request = .introduce(try reader.message())
            case 10: request = try reader.parts(Self.claim)
            case 11: request = .stateHash(group, at: LogIndex(try reader.unsigned()))
            case 12: request = try reader.parts { .distrust(group, $0, at: $1) }
            case 13: request = .condition(GroupID(try reader.unsigned()))
            case 14: terms.container = try reader.string()
            case 15: terms.milliseconds = try reader.unsigned()
            case 18: terms.isAfterLog = try reader.bool()
            case 19: terms.origin.request = try reader.array()
            case 23: terms.origin.place = try TraceContext(field: &reader)
            case 20: request = .inquire(try reader.array())
            case 16: request = try reader.parts { .holdAsset($0, group, from: $1, after: $2) }
            case 17: request = try Self.readAsset(&reader)
            case 21: request = try reader.parts(Self.followUpload)
            case 22: request = try reader.parts { .readUpload($0, from: $1) }
            default: try reader.skip()
            }
        }
        switch request {
        case .read(let group, let bytes, _)?: request = .read(group, request: bytes, terms)
        case .propose(let group, let command, _)?: request = .propose(group, command: command, origin: terms.origin)
        default: break
        }
        guard let request else { throw .missingField(2) }
        self = request
    }
}

extension RequestOrigin {
    fileprivate func write(to writer: inout WireWriter) {
        if !request.isEmpty { writer.field(19, request) }
        place?.write(23, to: &writer)
    }
}

extension NodeRequest {
    private static func readAsset(_ reader: inout WireReader) throws(WireError) -> NodeRequest {
        let (asset, start, end): (AssetReference, UInt64, UInt64) = try reader.parts { ($0, $1, $2) }
        guard start <= end, end <= asset.size, end - start <= AssetBytes.pieceBytes else {
            throw .invalidValue(field: 3)
        }
        return .readAsset(asset, start..<end)
    }
}

extension NodeReply {
    /// How much of a snapshot has come.
    static func received(_ bytes: UInt64) -> NodeReply { .done(SnapshotProgress(receivedBytes: bytes).encoded()) }
}

extension NodeReply: WireUnion {
    func encode(to writer: inout WireWriter) {
        switch self {
        case .done(let bytes): writer.field(1, bytes)
        case .notLeader(let hint): writer.field(2, hint?.rawValue ?? 0)
        case .overloaded: writer.field(3, true)
        case .superseded: writer.field(4, true)
        case .outcomeUnknown(let reason): writer.field(5, reason)
        case .failed(let reason): writer.field(6, reason)
        case .diskFull: writer.field(7, true)
        case .unavailable(let reason): writer.field(8, reason)
        case .tooLarge(let size): size.write(9, to: &writer)
        case .readEnded: writer.field(10, true)
        case .whole(let asset): asset.write(11, to: &writer)
        }
    }

    init?(_ number: Int, from reader: inout WireReader) throws(WireError) {
        switch number {
        case 1: self = .done(try reader.array())
        case 2:
            let hint = try reader.unsigned()
            self = .notLeader(hint: hint == 0 ? nil : ReplicaID(hint))
        case 3: self = try reader.flag(.overloaded)
        case 4: self = try reader.flag(.superseded)
        case 5: self = .outcomeUnknown(try reader.string())
        case 6: self = .failed(try reader.string())
        case 7: self = try reader.flag(.diskFull)
        case 8: self = .unavailable(try reader.string())
        case 9: self = .tooLarge(try reader.message())
        case 10: self = try reader.flag(.readEnded)
        case 11: self = .whole(try reader.message())
        default: return nil
        }
    }
}

/// What is too large to be passed between nodes, or to be kept by them. Asking for the same again does not help.
package struct Oversize: Hashable, Sendable, WireMessage {
    /// Which message is too large, and with it whether the request was carried out.
    package enum Part: UInt64, Sendable {
        /// What was asked; nothing was done.
        case request = 1
        /// The answer. What was asked was done.
        case answer = 2
    }

    /// What is too large.
    package var part: Part
    /// Encoded.
    package var bytes: Int
    /// The limit that was exceeded, in bytes: of a command or of a frame.
    package var bytesMax: Int

    package init(_ part: Part, bytes: Int, bytesMax: Int) {
        self.part = part
        self.bytes = bytes
        self.bytesMax = bytesMax
    }

    package static var blank: Self { Oversize(.request, bytes: 0, bytesMax: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.field(1, &part)
        try wire.field(2, &bytes)
        try wire.field(3, &bytesMax)
    }
}

extension Oversize.Part: WireValue {}

/// What the layers above answer for other nodes. Nothing of it is logged or survives a restart: it is for coordination
/// that can restart from nothing, such as rate shares.
package protocol NodeServices: AnyObject, Sendable {
    /// Answers a request made to the leader of a group. Called on the lane's event loop: short, and never blocking.
    /// - Parameter reply: called once, on any thread.
    func confer(_ request: [UInt8], as leadership: Leadership, reply: @escaping @Sendable ([UInt8]) -> Void)
    /// Takes what another node has to tell. Called on the lane's event loop: short, and never blocking.
    func hear(_ message: [UInt8], from node: NodeID)
    /// Answers a question of another node, whatever this one leads. Called on the lane's event loop: never blocking.
    /// - Parameter reply: called once, on any thread; nil where this build does not know the question.
    func answer(_ question: [UInt8], reply: @escaping @Sendable ([UInt8]?) -> Void)
}

/// This node's lead of a group at one moment. Another node may lead in a later term already, for as long as an election
/// takes.
package struct Leadership: Hashable, Sendable {
    /// The group that this node leads.
    package var group: GroupID
    /// The term of the lead.
    package var term: Term
    /// When this node became the leader, on its clock that counts suspension.
    package var since: MonotonicTime
    /// When the request is handed to the services, on the same clock.
    package var now: MonotonicTime
}

/// The services of a node, once there are any, and for as long as there are.
final class ServiceHolder: Sendable {
    private struct Services {
        // They hold the node.
        weak var current: (any NodeServices)?
    }

    private let services = Mutex(Services())

    var current: (any NodeServices)? { services.withLock(\.current) }

    func set(_ new: any NodeServices) { services.withLock { $0.current = new } }

    /// Passes on what a node tells; before there is anybody to hear it, it is lost, as a message may be.
    func tell(_ message: [UInt8], from node: NodeID, _ answer: @Sendable (NodeReply) -> Void) {
        current?.hear(message, from: node)
        answer(.done([]))
    }

    /// Has a question to this node answered.
    func inquire(_ question: [UInt8], of node: NodeID, _ answer: @escaping @Sendable (NodeReply) -> Void) {
        guard let current else { return answer(.unavailable("node \(node) is starting")) }
        current.answer(question) { bytes in
            answer(bytes.map { .done($0) } ?? .unavailable("node \(node) runs a build that cannot answer this"))
        }
    }
}
