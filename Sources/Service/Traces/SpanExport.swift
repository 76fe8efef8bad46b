package import Cluster
import Glibc
package import Logging
import PeerTransport
import RecordModel
import Storage
import Synchronization
package import Telemetry
import Tracing

/// Writes the spans of a node to a file every second, on a thread of its own: no request waits for it, and what it
/// cannot write is dropped and counted.
package final class SpanExport: Sendable {
    /// Where to, and how much.
    package struct Settings: Sendable {
        /// The folder of the files, which is made.
        package var folder: String
        /// What the files may have together.
        package var bytesMax = 64 << 20

        package init(folder: String) { self.folder = folder }
    }

    /// Spans of one line: a line of them has a few 100 KB.
    private static let spansPerLineMax = 500
    private static let intervalMilliseconds: UInt64 = 1_000

    private let queue: SpanQueue
    private let resource: [(name: String, value: String)]
    private let file: Mutex<SpanFile>
    private let rounds = Mutex<(any Rounds)?>(nil)
    private let quietLog = Mutex(QuietLog())
    private let logger: Logger

    package init(_ queue: SpanQueue, _ settings: Settings, of node: NodeSettings, logger: Logger) {
        self.queue = queue
        self.logger = logger
        file = Mutex(SpanFile(folder: settings.folder, bytesMax: settings.bytesMax))
        resource = [
            ("service.name", "zonekeeper"), ("service.namespace", node.clusterID),
            ("service.instance.id", "\(node.nodeID)"), ("service.version", node.version),
        ]
    }

    /// Begins the rounds.
    package func start(on platform: any NodePlatform) {
        let begun = platform.makeRounds(name: "traces", everyMilliseconds: Self.intervalMilliseconds) { [weak self] in
            self?.write()
        }
        rounds.withLock { $0 = begun }
    }

    /// Ends them, and writes what waits. Blocks for as long as that takes.
    package func stop() {
        rounds.withLock { $0.take() }?.stop()
        write()
    }

    func write() {
        var spans = queue.takeAll()[...]
        while !spans.isEmpty {
            let some = Array(spans.prefix(Self.spansPerLineMax))
            spans = spans.dropFirst(some.count)
            let line = SpanLine.line(some, resource: resource)
            do {
                try file.withLock { try $0.append(line) }
                queue.count(some.count, isWritten: true)
            } catch {
                queue.count(some.count, isWritten: false)
                quietLog.withLock { $0.log(logger, .warning, "traces cannot be written: \(error)", key: "traces") }
            }
        }
    }
}

/// The file that spans are written to, and the one before it: together they have so many bytes at most. What is in them
/// need not survive a crash, so nothing is synced.
struct SpanFile {
    /// Lines are added to `traces.jsonl`; when that is half of what there may be, it becomes `traces.1.jsonl`.
    static let name = "traces.jsonl"
    static let formerName = "traces.1.jsonl"

    let folder: String
    /// Of both files.
    let bytesMax: Int
    var open: (file: DiskFile, size: Int)?

    /// Adds a line. A line that is longer than a file may be is an error.
    /// - Throws: `DiskError`; a part of the line may be there then, and the next one begins on a line of its own.
    mutating func append(_ line: [UInt8]) throws(DiskError) {
        let path = "\(folder)/\(Self.name)"
        guard line.count <= bytesMax / 2 else { throw DiskError(operation: "write", path: path, code: EFBIG) }
        if open == nil { open = try Self.opened(folder, path) }
        if let present = open, present.size + line.count > bytesMax / 2 {
            open = nil
            try renameFile(at: path, to: "\(folder)/\(Self.formerName)")
            open = try Self.opened(folder, path)
        }
        guard let (file, size) = open else { return }
        do throws(DiskError) {
            try file.writeAll(line, at: size)
        } catch {
            // The file is opened again for the next line, which begins behind an end of line.
            open = nil
            throw error
        }
        open = (file, size + line.count)
    }

    private static func opened(_ folder: String, _ path: String) throws(DiskError) -> (file: DiskFile, size: Int) {
        try makeFolder(at: folder)
        let file = try DiskFile(path: path, flags: O_RDWR | O_CREAT)
        var size = try file.size()
        // A process that was killed, or a full disk, may have left a part of a line.
        if size > 0, try file.bytes(at: size - 1, count: 1) != [UInt8(ascii: "\n")] {
            try file.writeAll([UInt8(ascii: "\n")], at: size)
            size += 1
        }
        return (file, size)
    }
}

/// Spans in the JSON form of OTLP: a `TracesData` a line, which is what OpenTelemetry's file exporters write.
enum SpanLine {
    /// - Parameter resource: what is said of the node, by name.
    /// - Returns: one line, with its end.
    static func line(_ spans: [FinishedSpan], resource: [(name: String, value: String)]) -> [UInt8] {
        var writer = JSONWriter(capacity: 512 * spans.count)
        writer.object { writer in
            writer.list("resourceSpans") { writer in
                writer.object { writer in
                    writer.key("resource")
                    writer.object { writer in
                        writer.attributes(resource.map { ($0.name, .string($0.value)) })
                    }
                    writer.list("scopeSpans") { writer in
                        writer.object { writer in
                            writer.key("scope")
                            writer.object { $0.member("name", "zonekeeper") }
                            writer.list("spans") { writer in
                                for span in spans { writer.object { $0.members(of: span) } }
                            }
                        }
                    }
                }
            }
        }
        return writer.bytes + [UInt8(ascii: "\n")]
    }
}

extension JSONWriter {
    fileprivate mutating func list(_ key: String, _ body: (inout JSONWriter) -> Void) {
        self.key(key)
        array(body)
    }

    /// Ids are hexadecimal digits, and 64 bits of a number a string, as the form asks for.
    fileprivate mutating func members(of span: FinishedSpan) {
        member("traceId", span.context.trace.text)
        member("spanId", TraceContext.text(ofSpan: span.context.span))
        if let parent = span.parent { member("parentSpanId", TraceContext.text(ofSpan: parent)) }
        member("name", span.name)
        member("kind", integer: span.kind.number)
        member("startTimeUnixNano", String(span.begin))
        member("endTimeUnixNano", String(span.end))
        attributes(span.attributes.sorted)
        if !span.events.isEmpty {
            list("events") { writer in
                for event in span.events {
                    writer.object { writer in
                        writer.member("timeUnixNano", String(event.nanosecondsSinceEpoch))
                        writer.member("name", event.name)
                        writer.attributes(event.attributes.sorted)
                    }
                }
            }
        }
        let links = span.links.compactMap { link in link.context.trace.map { ($0, link.attributes) } }
        if !links.isEmpty {
            list("links") { writer in
                for (place, attributes) in links {
                    writer.object { writer in
                        writer.member("traceId", place.trace.text)
                        writer.member("spanId", TraceContext.text(ofSpan: place.span))
                        writer.attributes(attributes.sorted)
                    }
                }
            }
        }
        guard let status = span.status else { return }
        key("status")
        object { writer in
            writer.member("code", integer: status.code == .ok ? 1 : 2)
            if let message = status.message { writer.member("message", message) }
        }
    }

    /// Nothing where there are none.
    fileprivate mutating func attributes(_ attributes: [(name: String, value: SpanAttribute)]) {
        guard !attributes.isEmpty else { return }
        list("attributes") { writer in
            for (name, value) in attributes {
                writer.object { writer in
                    writer.member("key", name)
                    writer.key("value")
                    writer.object { $0.member(of: value) }
                }
            }
        }
    }

    /// A value of an attribute as the member that names its kind; a list as its members' text.
    private mutating func member(of value: SpanAttribute) {
        switch value {
        case .int32(let number): member("intValue", String(number))
        case .int64(let number): member("intValue", String(number))
        case .double(let number): member("doubleValue", number: number)
        case .bool(let flag): member("boolValue", flag)
        case .string(let text): member("stringValue", text)
        case .stringConvertible(let value): member("stringValue", value.description)
        case .int32Array(let list): member("stringValue", "\(list)")
        case .int64Array(let list): member("stringValue", "\(list)")
        case .doubleArray(let list): member("stringValue", "\(list)")
        case .boolArray(let list): member("stringValue", "\(list)")
        case .stringArray(let list): member("stringValue", "\(list)")
        default: member("stringValue", "")
        }
    }
}

extension SpanAttributes {
    /// By name, so that a line repeats.
    fileprivate var sorted: [(name: String, value: SpanAttribute)] {
        var all: [(name: String, value: SpanAttribute)] = []
        forEach { all.append(($0, $1)) }
        return all.sorted { $0.name < $1.name }
    }
}

extension SpanKind {
    /// OTLP's.
    fileprivate var number: Int64 {
        switch self {
        case .internal: 1
        case .server: 2
        case .client: 3
        case .producer: 4
        case .consumer: 5
        }
    }
}

/// What the tasks of a request have in common.
package enum RequestWork {
    /// Does a request's work under its name, by which the logs of all nodes that have a part in it have it.
    /// - Parameters:
    ///   - client: the client's place in a trace, if it told one.
    ///   - span: the request's own, below which its parts are recorded; nil where none is.
    package static func run<Value>(
        _ id: String, below client: TraceContext? = nil, _ span: RecordedSpan? = nil, _ work: () async -> Value
    ) async -> Value {
        await RequestTrace.$current.withValue(RequestTrace(id: id, place: span?.place ?? client)) {
            guard let span else { return await work() }
            return await ServiceContext.$current.withValue(span.context) { await work() }
        }
    }
}
