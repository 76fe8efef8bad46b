import RecordModel
import Telemetry
import Tracing

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
