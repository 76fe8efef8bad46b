/// An event of a stream of server-sent events.
package struct ServerSentEvent: Hashable, Sendable {
    /// The newest id that the stream has named so far.
    package var id: String?
    /// `message` where the stream names none.
    package var name: String
    /// The lines of the event's data, with line feeds between.
    package var data: String

    package init(id: String? = nil, name: String = "message", data: String) {
        self.id = id
        self.name = name
        self.data = data
    }
}

/// Reads a stream of server-sent events from whatever pieces it comes in (WHATWG HTML, section 9.2).
///
/// Comments and fields that nobody knows are skipped. What an event may hold is bounded, so that a broken stream cannot
/// fill the memory.
package struct ServerSentEventParser: Sendable {
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var name = ""
    private var id: String?
    private var isAfterReturn = false
    private let eventBytesMax: Int

    /// - Parameter eventBytesMax: the longest line, and the most data of an event.
    package init(eventBytesMax: Int) { self.eventBytesMax = eventBytesMax }

    /// Bytes came.
    /// - Returns: the events that are complete now.
    /// - Throws: where a line or an event is too long; the stream is of no use then.
    package mutating func received(_ bytes: some Sequence<UInt8>) throws(ServiceClientError) -> [ServerSentEvent] {
        var events: [ServerSentEvent] = []
        for byte in bytes {
            let isSecondHalf = isAfterReturn && byte == UInt8(ascii: "\n")
            isAfterReturn = byte == UInt8(ascii: "\r")
            if isSecondHalf { continue }
            guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
                guard line.count < eventBytesMax else { throw tooLong() }
                line.append(byte)
                continue
            }
            if let event = try ended() { events.append(event) }
            line.removeAll(keepingCapacity: true)
        }
        return events
    }

    /// A line ended.
    private mutating func ended() throws(ServiceClientError) -> ServerSentEvent? {
        guard !line.isEmpty else { return dispatched() }
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        var value = line[min(colon + 1, line.endIndex)...]
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        switch String(decoding: line[..<colon], as: UTF8.self) {
        case "data":
            if hasData { data.append(UInt8(ascii: "\n")) }
            guard data.count + value.count <= eventBytesMax else { throw tooLong() }
            data.append(contentsOf: value)
            hasData = true
        case "event": name = String(decoding: value, as: UTF8.self)
        case "id": if !value.contains(0) { id = String(decoding: value, as: UTF8.self) }
        default: break
        }
        return nil
    }

    /// An empty line ends an event; one without data is none.
    private mutating func dispatched() -> ServerSentEvent? {
        defer {
            data.removeAll(keepingCapacity: true)
            hasData = false
            name = ""
        }
        guard hasData else { return nil }
        return ServerSentEvent(
            id: id, name: name.isEmpty ? "message" : name, data: String(decoding: data, as: UTF8.self))
    }

    private func tooLong() -> ServiceClientError {
        ServiceClientError("an event of the stream has more than \(eventBytesMax) bytes. Is this a Zonekeeper node?")
    }
}
