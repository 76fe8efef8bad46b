import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import RecordModel
import Synchronization
import Testing

@testable import CloudKit

/// A server that has records with assets in memory, and fails in the ways that a test asks for. It may listen as
/// several nodes.
final class AssetServer: Sendable {
    /// What goes wrong; each count is used up.
    struct Faults {
        /// Connections that are closed after so many bytes of an upload came.
        var cutUploads: [Int] = []
        /// Downloads whose connection is closed after so many bytes; behind the last one before the answer's end.
        var cutDownloads: [Int] = []
        /// How often a URL is answered with this status.
        var uploadStatus: [Int] = []
        var downloadStatus: [Int] = []
        /// Whether downloads say another digest than that of their bytes.
        var wrongDigests = 0
        /// The nodes of which all downloads do.
        var damagedNodes: Set<Int> = []
        /// How many bytes too many downloads have.
        var surplusBytes = 0
        /// Whether downloads have an entity tag.
        var hasTags = true
        /// Fields for which no upload is allowed.
        var refusedField: String?
        /// Whether that refuses the whole request.
        var refusesWhole = false
        /// Called with the bytes of an upload that have come so far.
        var duringUpload: (@Sendable (Int) -> Void)?
    }

    /// What the server was asked.
    struct Request: Sendable {
        var path: String
        var json: JSONValue
        var range: String?
        var node: Int
    }

    private struct State {
        var faults = Faults()
        var log: [Request] = []
        var files: [String: [UInt8]] = [:]
        var records: [(name: String, zone: String, json: [JSONValue.Member])] = []
        var count = 0
        var channels: [any Channel] = []
        var ports: [Int] = []
        var container: CKContainer?
    }

    private let state = Mutex(State())

    /// Runs `body` with a server and a database on it.
    static func running(
        nodes: Int = 1, patience: Duration = .zero, _ body: (AssetServer, CKDatabase) async throws -> Void
    ) async throws {
        let server = AssetServer()
        for node in 0..<nodes {
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline(withPipeliningAssistance: false)
                        try channel.pipeline.syncOperations.addHandler(AssetHandler(server, node: node))
                    }
                }.bind(host: "127.0.0.1", port: 0).get()
            server.state.withLock { state in
                state.channels.append(channel)
                state.ports.append(channel.localAddress?.port ?? 0)
            }
        }
        let configuration = ZonekeeperConfiguration(
            urls: server.urls, container: "assets", apiToken: "a", webAuthToken: "u", patience: patience)
        let container = CKContainer(configuration: configuration)
        server.state.withLock { $0.container = container }
        do {
            try await body(server, container.privateCloudDatabase)
        } catch {
            server.stop()
            throw error
        }
        server.stop()
    }

    private func stop() { for channel in state.withLock(\.channels) { channel.close(promise: nil) } }

    /// What `running` makes its database of.
    var container: CKContainer? { state.withLock(\.container) }
    var urls: [String] { state.withLock(\.ports).map { "http://127.0.0.1:\($0)" } }
    /// What it was asked, in order.
    var requests: [Request] { state.withLock(\.log) }
    /// How often something was asked for, by the end or the begin of its path.
    func count(_ path: String) -> Int { requests.filter { $0.path.hasSuffix(path) || $0.path.hasPrefix(path) }.count }
    /// The contents of all files that arrived.
    var files: [[UInt8]] { state.withLock { Array($0.files.values) } }
    func fail(_ change: (inout Faults) -> Void) { state.withLock { change(&$0.faults) } }
    fileprivate func use<Value>(_ change: (inout Faults) -> Value) -> Value { state.withLock { change(&$0.faults) } }

    /// Removes a record, as another device would.
    func remove(_ name: String) { state.withLock { $0.records.removeAll { $0.name == name } } }

    /// Puts a file into an asset field of a record that is there, as another device would.
    func replace(_ bytes: [UInt8], in field: String, of name: String) {
        state.withLock { state in
            let checksum = Self.checksum(bytes)
            state.files[checksum] = bytes
            guard let place = state.records.firstIndex(where: { $0.name == name }) else { return }
            state.records[place].json = [.init(field, Self.asset(checksum, bytes.count))]
            state.count += 1
        }
    }

    fileprivate static func checksum(_ bytes: [UInt8]) -> String {
        var hasher = Hasher()
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        return "c\(UInt(bitPattern: hasher.finalize()))"
    }

    private static func asset(_ checksum: String, _ size: Int) -> JSONValue {
        .members([
            "value": .members(["fileChecksum": .string(checksum), "size": .integer(Int64(size))]),
            "type": .string("ASSETID"),
        ])
    }
}

// The routes.
extension AssetServer {
    fileprivate struct Answer {
        var status = 200
        var headers: [(String, String)] = []
        var body: [UInt8] = []
        var cutAfter: Int?
    }

    fileprivate func answer(_ head: HTTPRequestHead, _ body: [UInt8], node: Int) -> Answer {
        let path = head.uri.split(separator: "?").first.map(String.init) ?? ""
        let json = path.hasPrefix("/up/") ? .null : (try? JSONParser.parse(body)) ?? .null
        return state.withLock { state in
            let range = head.headers.first(name: "Range")
            state.log.append(Request(path: path, json: json, range: range, node: node))
            if path.hasPrefix("/up/") { return Self.upload(body, &state) }
            if path.hasPrefix("/down/") { return Self.download(String(path.dropFirst(6)), head, node, &state) }
            let action = path.split(separator: "/").suffix(2).joined(separator: "/")
            if action == "assets/upload", state.faults.refusesWhole,
                json["tokens"]?.array?.contains(where: { $0["fieldName"]?.string == state.faults.refusedField }) == true
            {
                return Self.refusal(400)
            }
            let answer: JSONValue =
                switch action {
                case "assets/upload": Self.tokens(json, "http://127.0.0.1:\(state.ports[node])", &state)
                case "assets/rereference": Self.rereference(json, state)
                case "records/modify": Self.modify(json, node, &state)
                case "records/lookup", "records/query": Self.find(json, node, state)
                case "changes/zone": Self.changes(node, state)
                case "changes/database": Self.zones(state)
                case "users/caller": .members(["userRecordName": .string("_u")])
                default: .null
                }
            return Answer(body: answer.serialized())
        }
    }

    private static func tokens(_ json: JSONValue, _ url: String, _ state: inout State) -> JSONValue {
        let tokens = (json["tokens"]?.array ?? []).map { token -> JSONValue in
            if let field = state.faults.refusedField, token["fieldName"]?.string == field {
                return .members(["serverErrorCode": .string("ACCESS_DENIED"), "reason": .string("not that field")])
            }
            state.count += 1
            return .members(["url": .string("\(url)/up/\(state.count)?s=x")])
        }
        return .members(["tokens": .array(tokens)])
    }

    private static func upload(_ body: [UInt8], _ state: inout State) -> Answer {
        if !state.faults.uploadStatus.isEmpty { return refusal(state.faults.uploadStatus.removeFirst()) }
        let checksum = checksum(body)
        state.files[checksum] = body
        return Answer(body: JSONValue.members(["singleFile": receipt(checksum, body.count)]).serialized())
    }

    private static func receipt(_ checksum: String, _ size: Int) -> JSONValue {
        .members([
            "receipt": .string("r-" + checksum), "fileChecksum": .string(checksum), "size": .integer(Int64(size)),
            "wrappingKey": .string("w"), "referenceChecksum": .string("f"),
        ])
    }

    private static func rereference(_ json: JSONValue, _ state: State) -> JSONValue {
        func receipt(_ asset: JSONValue) -> JSONValue {
            let checksum = asset["fileChecksum"]?.string ?? ""
            return Self.receipt(checksum, state.files[checksum]?.count ?? 0)
        }
        let assets = (json["assets"]?.array ?? []).map { item -> JSONValue in
            let record = state.records.first { $0.name == item["recordName"]?.string }
            let field = record?.json.first { $0.key == item["fieldName"]?.string }
            guard let value = field?.value["value"] else {
                return .members([
                    "recordName": item["recordName"], "serverErrorCode": .string("NOT_FOUND"),
                    "reason": .string("no asset"),
                ])
            }
            return value.array.map { .array($0.map(receipt)) } ?? receipt(value)
        }
        return .members(["assets": .array(assets)])
    }

    private static func refusal(_ status: Int) -> Answer {
        let code = status == 503 ? "TRY_AGAIN_LATER" : status == 404 ? "NOT_FOUND" : "BAD_REQUEST"
        return Answer(
            status: status,
            body: Array(#"{"serverErrorCode":"\#(code)","reason":"status \#(status)","retryAfterMilliseconds":1}"#.utf8)
        )
    }

    private static func download(
        _ checksum: String, _ head: HTTPRequestHead, _ node: Int, _ state: inout State
    ) -> Answer {
        if !state.faults.downloadStatus.isEmpty { return refusal(state.faults.downloadStatus.removeFirst()) }
        guard var bytes = state.files[checksum] else { return refusal(404) }
        bytes += [UInt8](repeating: 0, count: state.faults.surplusBytes)
        var answer = Answer(body: bytes)
        if state.faults.hasTags { answer.headers.append(("ETag", "\"\(checksum)\"")) }
        if state.faults.wrongDigests > 0 || state.faults.damagedNodes.contains(node) {
            state.faults.wrongDigests = max(state.faults.wrongDigests - 1, 0)
            answer.headers.append(("Repr-Digest", "sha-256=:\(Base64.encode([UInt8](repeating: 1, count: 32))):"))
        }
        if let range = head.headers.first(name: "Range"), let first = Int(range.dropFirst(6).dropLast()),
            head.headers.first(name: "If-Range") == "\"\(checksum)\""
        {
            if first >= bytes.count { return refusal(416) }
            answer.status = 206
            answer.headers.append(("Content-Range", "bytes \(first)-\(bytes.count - 1)/\(bytes.count)"))
            answer.body = Array(bytes[first...])
        }
        if !state.faults.cutDownloads.isEmpty { answer.cutAfter = state.faults.cutDownloads.removeFirst() }
        return answer
    }

    private static func modify(_ json: JSONValue, _ node: Int, _ state: inout State) -> JSONValue {
        let zone = json["zoneID"]?["zoneName"]?.string ?? ""
        let results = (json["operations"]?.array ?? []).map { operation -> JSONValue in
            let record = operation["record"] ?? .null
            let name = record["recordName"]?.string ?? ""
            var fields: [JSONValue.Member] = state.records.first { $0.name == name }?.json ?? []
            if case .object(let members)? = record["fields"] {
                for member in members {
                    let before = fields.first { $0.key == member.key }?.value
                    fields.removeAll { $0.key == member.key }
                    guard let value = member.value["value"], !value.isNull else { continue }
                    for part in value.array ?? [value] where part["fileChecksum"] != nil && part["receipt"] == nil {
                        let kept = before?["value"].map { $0.array ?? [$0] } ?? []
                        guard kept.contains(where: { $0["fileChecksum"] == part["fileChecksum"] }) else {
                            return .members([
                                "recordName": .string(name), "serverErrorCode": .string("BAD_REQUEST"),
                                "reason": .string("an asset without a receipt that the field does not have"),
                            ])
                        }
                    }
                    fields.append(member)
                }
            }
            state.records.removeAll { $0.name == name }
            state.records.append((name, zone, fields))
            state.count += 1
            return self.record(name, zone, fields, nil, node, state)
        }
        return .members(["records": .array(results)])
    }

    private static func find(_ json: JSONValue, _ node: Int, _ state: State) -> JSONValue {
        let keys = json["desiredKeys"]?.array?.compactMap(\.string)
        let names = json["records"]?.array?.compactMap { $0["recordName"]?.string } ?? state.records.map(\.name)
        let found = names.map { name -> JSONValue in
            guard let record = state.records.first(where: { $0.name == name }) else {
                return .members([
                    "recordName": .string(name), "serverErrorCode": .string("NOT_FOUND"), "reason": .string("none"),
                ])
            }
            return self.record(name, record.zone, record.json, keys, node, state)
        }
        return .members(["records": .array(found)])
    }

    private static func changes(_ node: Int, _ state: State) -> JSONValue {
        let records = state.records.map { self.record($0.name, $0.zone, $0.json, nil, node, state) }
        let zone = JSONValue.members([
            "syncToken": .string("t\(state.count)"), "moreComing": .bool(false), "records": .array(records),
        ])
        return .members(["zones": .array([zone])])
    }

    private static func zones(_ state: State) -> JSONValue {
        let zone = JSONValue.members(["zoneID": .members(["zoneName": .string("z")]), "incarnation": .integer(1)])
        return .members([
            "syncToken": .string("t\(state.count)"), "moreComing": .bool(false), "zones": .array([zone]),
        ])
    }

    private static func record(
        _ name: String, _ zone: String, _ fields: [JSONValue.Member], _ keys: [String]?, _ node: Int, _ state: State
    ) -> JSONValue {
        let shown = fields.filter { keys?.contains($0.key) ?? true }.map { field in
            JSONValue.Member(field.key, read(field.value, "http://127.0.0.1:\(state.ports[node])"))
        }
        return .members([
            "recordName": .string(name), "recordType": .string("Photo"),
            "recordChangeTag": .string("\(state.count)"), "zoneID": .members(["zoneName": .string(zone)]),
            "fields": .object(shown),
        ])
    }

    /// A field as reads have it: assets with three keys.
    private static func read(_ field: JSONValue, _ url: String) -> JSONValue {
        func asset(_ value: JSONValue) -> JSONValue {
            guard let checksum = value["fileChecksum"] else { return value }
            return .members([
                "fileChecksum": checksum, "size": value["size"],
                "downloadURL": .string("\(url)/down/\(checksum.string ?? "")?e=1"),
            ])
        }
        let value = field["value"].map { value in value.array.map { .array($0.map(asset)) } ?? asset(value) }
        return .members(["value": value, "type": field["type"]])
    }
}

private final class AssetHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let server: AssetServer
    private let node: Int
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []
    private var received = 0
    private var cutAfter: Int?

    init(_ server: AssetServer, node: Int) { (self.server, self.node) = (server, node) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            (body, received) = ([], 0)
            cutAfter = nil
            if head.uri.hasPrefix("/up/") {
                cutAfter = server.use { $0.cutUploads.isEmpty ? nil : $0.cutUploads.removeFirst() }
            }
        case .body(let bytes):
            guard let head else { return }
            received += bytes.readableBytes
            if head.uri.hasPrefix("/up/"), let duringUpload = server.use({ $0.duringUpload }) {
                // Such files are large, and what is in them does not matter.
                duringUpload(received)
            } else {
                body += Array(bytes.readableBytesView)
            }
            if let cutAfter, received >= cutAfter {
                self.head = nil
                context.close(promise: nil)
            }
        case .end:
            guard let head else { return }
            send(server.answer(head, body, node: node), context)
        }
    }

    private func send(_ answer: AssetServer.Answer, _ context: ChannelHandlerContext) {
        var headers = HTTPHeaders(answer.headers)
        if answer.cutAfter == answer.body.count {
            headers.add(name: "Transfer-Encoding", value: "chunked")
        } else {
            headers.add(name: "Content-Length", value: String(answer.body.count))
        }
        let status = HTTPResponseStatus(statusCode: answer.status)
        context.write(
            wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))), promise: nil)
        let part = answer.cutAfter.map { Array(answer.body.prefix($0)) } ?? answer.body
        guard answer.cutAfter != nil else {
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: part)))), promise: nil)
            return context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: part))))).whenComplete { _ in
            bound.value.close(promise: nil)
        }
    }
}

/// A folder of a test, to be removed at its end.
struct TestFolder {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("assets-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    func remove() { try? FileManager.default.removeItem(atPath: path) }

    /// Makes a file of zeros that takes no room on the disk.
    func hole(_ size: UInt64) throws -> URL {
        let url = try file([], "hole")
        let handle = try FileHandle(forWritingTo: url)
        try handle.truncate(atOffset: size)
        try handle.close()
        return url
    }

    /// Makes a file.
    func file(_ bytes: [UInt8], _ name: String = "file") throws -> URL {
        let url = URL(fileURLWithPath: "\(path)/\(name)")
        try Data(bytes).write(to: url)
        return url
    }
}

/// Bytes that are not the same for two seeds.
func someBytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed
    // A period that is no power of two: a chunk in a wrong place shows.
    let block = (0..<997).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 33)
    }
    var bytes: [UInt8] = []
    while bytes.count < count { bytes += block }
    return Array(bytes.prefix(count))
}
