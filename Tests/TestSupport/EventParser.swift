package import RecordModel

/// An event of a stream.
package struct StreamEvent: Hashable, Sendable {
    /// Empty where it has none.
    package var name = ""
    /// Nil where it has none.
    package var id: String?
    /// Its lines, joined.
    package var data = ""

    /// The data, where it is JSON.
    package var json: JSONValue { (try? JSONParser.parse(Array(data.utf8))) ?? .null }
    /// The keys of a page of changes, or the names of records that a page of notifications tells of.
    package var keys: [String] {
        let notifications = json["notifications"]?.array?.compactMap { $0["payload"]?["ck"]?["qry"]?["rid"]?.string }
        return notifications ?? json["changes"]?.array?.compactMap { $0["key"]?.string } ?? []
    }
}

/// Takes a stream of server-sent events apart.
package struct EventParser {
    private var rest: [UInt8] = []
    /// Comments so far.
    package private(set) var comments = 0

    package init() {}

    /// The events that end in these bytes.
    package mutating func take(_ bytes: [UInt8]) -> [StreamEvent] {
        rest += bytes
        var events: [StreamEvent] = []
        while let end = (0..<max(rest.count - 1, 0)).first(where: { rest[$0] == 10 && rest[$0 + 1] == 10 }) {
            let lines = String(decoding: rest[..<end], as: UTF8.self).split(
                separator: "\n", omittingEmptySubsequences: false)
            rest.removeFirst(end + 2)
            var event = StreamEvent()
            for line in lines {
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                let value = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
                switch parts[0] {
                case "": comments += 1
                case "event": event.name = value
                case "id": event.id = value
                case "data": event.data += value
                default: break
                }
            }
            if !event.name.isEmpty { events.append(event) }
        }
        return events
    }
}
