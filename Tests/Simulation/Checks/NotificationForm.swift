import RecordModel

/// What the notifications of a subscription look like, as its user wants it.
struct NotificationForm: Hashable, Sendable {
    /// Members with a text, in the order in which too large payloads lose them; by their names in requests.
    var texts: [String: String] = [:]
    /// Members that name fields, whose values are arguments of texts.
    var arguments: [String: [String]] = [:]
    var flags: Set<String> = []
    /// Fields whose values are told; nil says nothing of them.
    var fields: [String]?

    private static let allTexts = [
        "alertBody", "alertLocalizationKey", "title", "titleLocalizationKey", "subtitle", "subtitleLocalizationKey",
        "alertActionLocalizationKey", "alertLaunchImage", "soundName", "category",
    ]
    private static let allArguments = ["alertLocalizationArgs", "titleLocalizationArgs", "subtitleLocalizationArgs"]

    /// - Parameters:
    ///   - text: makes it another one than all others of its user.
    ///   - fields: those that records have; empty where it tells of no records.
    static func random(text: String, fields: [String], using world: World) -> NotificationForm {
        var form = NotificationForm(texts: ["alertBody": text])
        if world.chance(40) {
            for name in allTexts.dropFirst() where world.chance(40) { form.texts[name] = "\(name) of \(text)" }
            form.flags = Set(
                ["shouldSendContentAvailable", "shouldSendMutableContent"].filter { _ in world.chance(50) })
            for name in allArguments where world.chance(40) {
                form.arguments[name] = (0..<world.random(0...2)).map { _ in
                    fields.isEmpty ? Place.valueField : world.pick(fields)
                }
            }
        }
        // Some say too much for a notification, which then has the value among the arguments alone.
        if world.chance(5) {
            form.texts["alertBody"] = text + String(repeating: "-", count: 4_400)
            form.arguments["alertLocalizationArgs"] = [Place.valueField]
        }
        // By its value the twin knows of which change it tells.
        guard !fields.isEmpty else { return form }
        let more = fields.filter { $0 != Place.valueField }.shuffled(using: &world.generator)
        // At most three fields may be told.
        form.fields = [Place.valueField] + more.prefix(world.random(0...2))
        return form
    }

    /// `notificationInfo` of a request.
    var json: JSONValue {
        var members = texts.mapValues(JSONValue.string)
        for (name, fields) in arguments { members[name] = .array(fields.map(JSONValue.string)) }
        for flag in flags { members[flag] = .bool(true) }
        if let fields { members["additionalFields"] = .array(fields.map(JSONValue.string)) }
        return .object(members.sorted { $0.key < $1.key }.map { .init($0.key, $0.value) })
    }
}

extension NotificationForm {
    /// What a notification tells of.
    struct Occasion {
        var subscription: String
        var kind: NotificationTwin.Subscription.Kind
        /// Whose log it is.
        var user: String
        var zone: WatchedHistory.Zone
        /// Of a query.
        var change: WatchedHistory.Change?
        /// The fields that were kept when the change was matched.
        var kept: Set<String> = []
    }

    /// The bytes that a payload may have.
    private static let bytesMax = 4_096
    /// What a payload loses one after the other where it is too large.
    private static let parts: [[String]] = [
        ["container"], ["fields"], ["soundName"], ["alertLaunchImage"], ["alertActionLocalizationKey"],
        ["alertBody", "title", "subtitle"], allArguments,
        ["alertLocalizationKey", "titleLocalizationKey", "subtitleLocalizationKey"], ["category"], ["id"], ["kind"],
    ]
    /// In the payload's alert, by the name in requests.
    private static let alert = [
        ("alertBody", "body"), ("alertLocalizationKey", "loc-key"), ("alertLocalizationArgs", "loc-args"),
        ("title", "title"), ("titleLocalizationKey", "title-loc-key"), ("titleLocalizationArgs", "title-loc-args"),
        ("subtitle", "subtitle"), ("subtitleLocalizationKey", "subtitle-loc-key"),
        ("subtitleLocalizationArgs", "subtitle-loc-args"), ("alertActionLocalizationKey", "action-loc-key"),
        ("alertLaunchImage", "launch-image"),
    ]

    /// The payload of a notification, without the change's name.
    func payload(of occasion: Occasion) -> String {
        var lost: Set<String> = []
        var payload = payload(of: occasion, without: lost)
        for part in Self.parts where size(of: payload, without: lost) > Self.bytesMax {
            lost.formUnion(part)
            payload = self.payload(of: occasion, without: lost)
        }
        return payload.inOrder
    }

    /// With the change's name, where it has one.
    private func size(of payload: JSONValue, without lost: Set<String>) -> Int {
        payload.inOrder.utf8.count + (lost.contains("id") ? 0 : #""nid":"","#.utf8.count + 36)
    }

    private func payload(of occasion: Occasion, without lost: Set<String>) -> JSONValue {
        var aps: [String: JSONValue] = [:]
        var alert: [String: JSONValue] = [:]
        for (name, member) in Self.alert where !lost.contains(name) {
            if let text = texts[name] { alert[member] = .string(text) }
            if let fields = arguments[name] { alert[member] = .array(fields.map { .string(argument($0, occasion)) }) }
        }
        if let body = alert["body"], alert.count == 1 {
            aps["alert"] = body
        } else if !alert.isEmpty {
            aps["alert"] = .members(alert)
        }
        for (name, member) in [("soundName", "sound"), ("category", "category")] where !lost.contains(name) {
            if let text = texts[name] { aps[member] = .string(text) }
        }
        if flags.contains("shouldSendContentAvailable") { aps["content-available"] = .integer(1) }
        if flags.contains("shouldSendMutableContent") { aps["mutable-content"] = .integer(1) }
        var ck: [String: JSONValue] = ["ce": .integer(2), "ckuserid": .string(occasion.user), "aux": .object([])]
        if !lost.contains("container") { ck["cid"] = .string(Place.container) }
        if !lost.isEmpty { ck["p"] = .integer(1) }
        if !lost.contains("kind") { ck[occasion.kind.rawValue] = told(occasion, without: lost) }
        return .members(["aps": .members(aps), "ck": .members(ck)])
    }

    private func told(_ occasion: Occasion, without lost: Set<String>) -> JSONValue {
        var told: [String: JSONValue] = [
            "sid": .string(occasion.subscription), "dbs": .integer(occasion.zone.owner == nil ? 2 : 1),
            "zid": .string(occasion.zone.name), "zoid": .string(occasion.zone.owner ?? occasion.user),
        ]
        guard let change = occasion.change else { return .members(told) }
        told["rid"] = .string(change.name)
        told["fo"] = .integer(Int64(change.event.rawValue))
        if let fields, change.event != .delete, !lost.contains("fields") {
            let values = fields.compactMap { name in
                occasion.kept.contains(name) ? change.shown(name).map { (name, $0) } : nil
            }
            told["af"] = .members(Dictionary(values) { first, _ in first })
        }
        return .members(told)
    }

    private func argument(_ field: String, _ occasion: Occasion) -> String {
        guard let change = occasion.change, change.event != .delete, occasion.kept.contains(field) else { return "" }
        return switch change.shown(field) {
        case .string(let text)?: text
        case .integer(let number)?: "\(number)"
        default: ""
        }
    }

    /// All fields of records that its notifications show.
    var shownFields: Set<String> { Set(arguments.values.joined()).union(fields ?? []) }
}

extension WatchedHistory.Change {
    /// What a notification shows of a field.
    fileprivate func shown(_ field: String) -> JSONValue? {
        switch field {
        case Place.valueField: value.map { .string(String($0.prefix(100))) }
        case Place.kindField: kind.map { .string($0) }
        case Place.numberField: content.number.map { .integer(Int64($0)) }
        case Place.textField: content.text.map { .string(String($0.prefix(100))) }
        case Place.placeField:
            content.latitude.map { .members(["latitude": .integer(Int64($0)), "longitude": .integer(10)]) }
        // Nothing is shown of lists.
        default: nil
        }
    }
}

extension JSONValue {
    fileprivate static func members(_ members: [String: JSONValue]) -> JSONValue {
        .object(members.sorted { $0.key < $1.key }.map { .init($0.key, $0.value) })
    }

    /// As text, with the members of all objects in the order of their keys.
    var inOrder: String {
        var writer = JSONWriter()
        writer.value(sorted)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// Whole numbers are the same with and without a fraction.
    private var sorted: JSONValue {
        switch self {
        case .object(let members):
            .object(members.map { Member($0.key, $0.value.sorted) }.sorted { $0.key < $1.key })
        case .array(let values): .array(values.map(\.sorted))
        case .number(let number): Int64(exactly: number).map { .integer($0) } ?? self
        default: self
        }
    }

    /// Without a member of an object in it.
    func without(_ key: String, in member: String) -> JSONValue {
        guard case .object(let members) = self else { return self }
        return .object(
            members.map { each in
                guard each.key == member, case .object(let inner) = each.value else { return each }
                return Member(each.key, .object(inner.filter { $0.key != key }))
            })
    }
}
