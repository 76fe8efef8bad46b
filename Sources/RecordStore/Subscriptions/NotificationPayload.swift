import RecordModel

/// What a device gets of a match, as Apple's servers send it.
struct NotificationPayload {
    /// The size of Apple's pushes.
    static let bytesMax = 4_096

    /// A payload as a row holds it: the JSON object, and where there is a collapse ID a zero and that. JSON has no such
    /// byte.
    struct Stored {
        var json: [UInt8]
        var collapseID: String?

        init(json: [UInt8], collapseID: String?) {
            self.json = json
            self.collapseID = collapseID
        }

        init(bytes: [UInt8]) {
            let end = bytes.firstIndex(of: 0)
            json = end.map { Array(bytes[..<$0]) } ?? bytes
            collapseID = end.map { String(decoding: bytes[($0 + 1)...], as: UTF8.self) }
        }

        var bytes: [UInt8] { json + (collapseID.map { [0] + Array($0.utf8) } ?? []) }

        /// Whether two payloads say the same: they differ in the name of the change at most.
        static func areAlike(_ left: [UInt8], _ right: [UInt8]) -> Bool {
            left.count == right.count && anonymous(left) == anonymous(right)
        }

        /// A payload before and after the 36 characters that name the change.
        private static func anonymous(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
            // In a text there is a backslash before each quotation mark.
            guard let key = bytes.firstRange(of: Array(#""nid":""#.utf8)) else { return [bytes[...]] }
            return [bytes[..<key.upperBound], bytes.dropFirst(key.upperBound + 36)]
        }
    }

    /// What may be left out where the payload is too large.
    private enum Part {
        case container, fields, sound, launchImage, actionKey, body, arguments, key, category, id, kind

        /// In this order. Without its kind a payload always fits.
        static let all: [Part] = [
            .container, .fields, .sound, .launchImage, .actionKey, .body, .arguments, .key, .category, .id, .kind,
        ]
        /// The same below `FeatureLevel.exactNotifications`.
        static let former: [Part] = [
            .container, .fields, .sound, .launchImage, .actionKey, .body, .arguments, .key, .id,
        ]
    }

    private let match: Match
    private let subscription: Subscription
    private let info: JSONValue
    private let level: FeatureLevel
    /// Whether nothing happened, and somebody tests who is told.
    private let isTest: Bool
    private var pruned: Set<Part> = []

    /// What a row holds; nil where the match is of another kind than the subscription.
    static func stored(
        of match: Match, for subscription: Subscription, at level: FeatureLevel, isTest: Bool = false
    ) -> [UInt8]? {
        guard (subscription.kind == .query) == (match.record != nil) else { return nil }
        let info = (try? JSONParser.parse(subscription.info)) ?? .object([])
        var payload = NotificationPayload(
            match: match, subscription: subscription, info: info, level: level, isTest: isTest)
        var json = payload.rendered()
        for part in level < .exactNotifications ? Part.former : Part.all where json.count > bytesMax {
            payload.pruned.insert(part)
            json = payload.rendered()
        }
        let collapseID = level < .collapseIDs ? nil : payload.text("collapseIDKey").map(payload.argument)
        return Stored(json: json, collapseID: collapseID?.isEmpty == true ? nil : collapseID).bytes
    }

    private init(match: Match, subscription: Subscription, info: JSONValue, level: FeatureLevel, isTest: Bool) {
        self.match = match
        self.subscription = subscription
        self.info = info
        self.level = level
        self.isTest = isTest
    }

    private func has(_ part: Part) -> Bool { !pruned.contains(part) }

    private func text(_ key: String) -> String? { info[key]?.string }

    private func rendered() -> [UInt8] {
        var writer = JSONWriter()
        writer.object { writer in
            writer.key("aps")
            writer.object { aps(to: &$0) }
            writer.key("ck")
            writer.object { ck(to: &$0) }
            if isTest { writer.member("zonekeeperTest", .bool(true)) }
        }
        return writer.bytes
    }

    // MARK: What is shown

    private func aps(to writer: inout JSONWriter) {
        var alert: [JSONValue.Member] = []
        func add(_ key: String, _ value: String?, _ part: Part) {
            if let value, has(part) { alert.append(.init(key, .string(value))) }
        }
        func addArguments(_ key: String, _ names: String) {
            guard let names = info[names]?.array, has(.arguments) else { return }
            alert.append(.init(key, .array(names.map { .string(argument($0.string ?? "")) })))
        }
        add("body", text("alertBody"), .body)
        add("loc-key", text("alertLocalizationKey"), .key)
        addArguments("loc-args", "alertLocalizationArgs")
        add("title", text("title"), .body)
        add("title-loc-key", text("titleLocalizationKey"), .key)
        addArguments("title-loc-args", "titleLocalizationArgs")
        add("subtitle", text("subtitle"), .body)
        add("subtitle-loc-key", text("subtitleLocalizationKey"), .key)
        addArguments("subtitle-loc-args", "subtitleLocalizationArgs")
        add("action-loc-key", text("alertActionLocalizationKey"), .actionKey)
        add("launch-image", text("alertLaunchImage"), .launchImage)
        if alert.count == 1, alert[0].key == "body" {
            writer.member("alert", alert[0].value)
        } else if !alert.isEmpty {
            writer.member("alert", .object(alert))
        }
        if let sound = text("soundName"), has(.sound) { writer.member("sound", sound) }
        if let category = text("category"), has(.category) { writer.member("category", category) }
        if info["shouldSendContentAvailable"] == .bool(true) { writer.member("content-available", integer: 1) }
        if info["shouldSendMutableContent"] == .bool(true) { writer.member("mutable-content", integer: 1) }
    }

    /// A field as the argument of a text; empty where the record has none.
    private func argument(_ field: String) -> String {
        switch match.record?.fields[field] {
        case .string(let text)?: String(text.prefix(100))
        case .timestamp(let time)? where level >= .collapseIDs: UTCTime(milliseconds: time).text
        case .int64(let number)?, .timestamp(let number)?: "\(number)"
        case .double(let number)?: "\(number)"
        default: ""
        }
    }

    // MARK: What has changed

    private func ck(to writer: inout JSONWriter) {
        writer.member("ce", integer: 2)
        if has(.container) { writer.member("cid", match.subscriber.container) }
        writer.member("ckuserid", match.subscriber.owner)
        if has(.id) { writer.member("nid", UUIDv7(match.id).text) }
        writer.key("aux")
        writer.object { _ in }
        if !pruned.isEmpty { writer.member("p", integer: 1) }
        guard has(.kind) else { return }
        writer.key(subscription.kind.key)
        writer.object { writer in
            writer.member("sid", subscription.id)
            writer.member("dbs", integer: match.zone.database.scope == .public ? 2 : 1)
            writer.member("zid", match.zone.name)
            writer.member(
                "zoid",
                match.zone.database.scope == .public ? match.subscriber.owner : match.zone.database.owner)
            if let record = match.record { members(of: record, to: &writer) }
        }
    }

    private func members(of record: Match.Record, to writer: inout JSONWriter) {
        writer.member("rid", record.name)
        writer.member("fo", integer: Int64(record.event.rawValue))
        guard has(.fields), record.event != .deleted, let wanted = info["additionalFields"]?.array else { return }
        writer.key("af")
        writer.object { writer in
            for name in wanted.compactMap(\.string) {
                if let value = record.fields[name].flatMap(Self.plain) { writer.member(name, value) }
            }
        }
    }

    /// A value without its type.
    private static func plain(_ value: FieldValue) -> JSONValue? {
        switch value {
        case .string(let text): .string(text)
        case .int64(let number), .timestamp(let number): .integer(number)
        case .double(let number): .number(number)
        case .location(let place):
            .object([.init("latitude", .number(place.latitude)), .init("longitude", .number(place.longitude))])
        case .reference(let reference): .string(reference.recordName)
        case .bytes, .asset, .list, .encrypted, .sealed: nil
        }
    }
}

extension Subscription.Kind {
    /// The member of a payload that says what changed.
    fileprivate var key: String {
        switch self {
        case .query: "qry"
        case .zone: "fet"
        case .database: "met"
        }
    }
}

extension Subscription {
    /// The fields of records that notifications show.
    func shownFields(at level: FeatureLevel) -> [String] {
        let info = (try? JSONParser.parse(info)) ?? .object([])
        let lists = ["additionalFields", "alertLocalizationArgs", "titleLocalizationArgs", "subtitleLocalizationArgs"]
            .flatMap { info[$0]?.array?.compactMap(\.string) ?? [] }
        return level < .collapseIDs ? lists : lists + [info["collapseIDKey"]?.string].compactMap(\.self)
    }
}
