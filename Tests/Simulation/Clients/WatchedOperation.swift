import HistoryChecks
import RecordModel

/// One operation of a request that changes watched records.
struct WatchedOperation: Sendable {
    /// As requests call it.
    var kind: String
    /// What it comes to.
    var change: WatchedHistory.Change
    /// The change tag that it expects.
    var version: Version?
    /// Fields that it does not send.
    var kept: Set<String> = []
    /// Why nothing comes of it.
    var refusal: ErrorCode?
    /// Whether nothing comes of it, also where it is not refused.
    var isVain = false
    /// Whether it is of a record that all clients change.
    var isOfBoard = false

    /// Operations that make a record.
    static let creations = ["create", "forceReplace", "forceUpdate"]

    init(kind: String, change: WatchedHistory.Change, version: Version? = nil) {
        (self.kind, self.change, self.version) = (kind, change, version)
    }

    fileprivate var form: String {
        let tag = version.map { #","recordChangeTag":"\#($0.tag)""# } ?? ""
        guard change.value != nil else {
            return #"{"operationType":"\#(kind)","record":{"recordName":"\#(change.name)"\#(tag)}}"#
        }
        let fields = fields.map { #""\#($0)":{"value":\#($1)}"# }.joined(separator: ",")
        let record = #""recordName":"\#(change.name)","recordType":"\#(change.type)"\#(tag),"fields":{\#(fields)}"#
        return #"{"operationType":"\#(kind)","record":{\#(record)}}"#
    }

    private var fields: [(String, String)] {
        let content = change.content
        var fields: [(String, String?)] = [
            (Place.valueField, change.value.map { "\"\($0)\"" }), (Place.kindField, change.kind.map { "\"\($0)\"" }),
        ]
        if change.type != Place.type {
            let labels = content.labels.map { "[\($0.map { "\"\($0)\"" }.joined(separator: ","))]" }
            fields += [
                (Place.numberField, content.number.map { "\($0)" }),
                (Place.textField, content.text.map { "\"\($0)\"" }),
                (Place.labelsField, labels),
                (Place.placeField, content.latitude.map { #"{"latitude":\#($0),"longitude":10}"# }),
            ]
        }
        let isUpdate = kind.lowercased().hasSuffix("update")
        return fields.compactMap { name, value in
            if kept.contains(name) { return nil }
            // Where the record is replaced, what is not sent goes.
            return value.map { (name, $0) } ?? (isUpdate && change.event == .update ? (name, "null") : nil)
        }
    }
}

extension [WatchedOperation] {
    /// The request that clients send for it.
    func body(zone: String, isAtomic: Bool) -> [UInt8] {
        let operations = map(\.form).joined(separator: ",")
        return [UInt8](
            #"{"operations":[\#(operations)],"zoneID":{"zoneName":"\#(zone)"},"atomic":\#(isAtomic)}"#.utf8)
    }
}

/// A public record that every client may change, while no other one does.
struct BoardNote: Sendable {
    let name: String
    /// Nil where it was deleted, or is not made.
    var note: Watchbook.Note?
    /// Whether it was deleted and made again: then it stays.
    var isReborn = false

    init(name: String) { self.name = name }

    func after(_ change: WatchedHistory.Change) -> BoardNote {
        var after = self
        after.note = change.value.map {
            .init(kind: change.kind, value: $0, type: change.type, content: change.content, creator: change.creator)
        }
        return after
    }
}
