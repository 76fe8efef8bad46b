package import RecordModel

/// The server's JSON for preferences, as `docs/preferences.md` has it.
package enum PreferenceWire {
    /// The body of `changes`.
    package static func changesRequest(since token: String?) -> JSONValue {
        .object(token.map { [JSONValue.Member("syncToken", .string($0))] } ?? [])
    }

    /// The body of `set`: every write with the version that it expects.
    package static func setRequest(_ batch: PreferenceBatch, device: String) -> JSONValue {
        let writes = batch.writes.map { write in
            JSONValue.object([
                .init("key", .string(write.key.text)), .init("value", write.value.map(json) ?? .null),
                .init("version", .string(write.expected.description)),
            ])
        }
        return .object([.init("writes", .array(writes)), .init("device", .string(device))])
    }

    /// A page of the feed; nil if the JSON is none.
    package static func page(_ json: JSONValue) -> PreferencePage? {
        guard let members = json["changes"]?.array, let token = json["syncToken"]?.string,
            case .bool(let isMoreComing) = json["moreComing"]
        else { return nil }
        var changes: [PreferencePage.Change] = []
        for member in members {
            guard let (key, value, version) = state(member), let version else { return nil }
            guard value != nil || member["deleted"] == .bool(true) else { return nil }
            changes.append(.init(key: key, value: value, version: version, device: member["device"]?.string))
        }
        return PreferencePage(changes: changes, token: token, isMoreComing: isMoreComing)
    }

    /// The versions in the answer to a `set` that was done; nil if the JSON is none.
    package static func versions(_ json: JSONValue, of batch: PreferenceBatch) -> [ChangeTag?]? {
        guard let members = json["values"]?.array, members.count == batch.writes.count else { return nil }
        var versions: [ChangeTag?] = []
        for (member, write) in zip(members, batch.writes) {
            guard let key = member["key"]?.string, PreferenceKey(key) == write.key else { return nil }
            guard let text = member["version"]?.string else {
                versions.append(nil)
                continue
            }
            guard let version = ChangeTag(text) else { return nil }
            versions.append(version)
        }
        return versions
    }

    /// What an error's body says of a `set`: a conflict, or a refusal; nil if it is neither.
    package static func rejection(_ json: JSONValue) -> PreferenceUploadAnswer? {
        if let members = json["conflicts"]?.array {
            var conflicts: [PreferenceUploadAnswer.Conflict] = []
            for member in members {
                guard let (key, value, version) = state(member) else { return nil }
                conflicts.append(.init(key: key, value: value, version: version))
            }
            return .conflict(conflicts)
        }
        let reason = json["reason"]?.string ?? "the server gave no reason"
        guard let limit = json["limit"]?.string else {
            // The batch's name was used for another one, or is too old.
            if reason.lowercased().contains("idempotency") { return .forgotten }
            let code = json["serverErrorCode"]?.string
            return code == "BAD_REQUEST" || code == "QUOTA_EXCEEDED" ? .refused(.other, key: nil, reason: reason) : nil
        }
        return .refused(
            PreferenceRefusal.Rule(rawValue: limit) ?? .other, key: json["key"]?.string.map { PreferenceKey($0) },
            reason: reason)
    }

    /// Whether an error says that the feed is to be read from its start.
    package static func isTokenExpired(_ json: JSONValue) -> Bool {
        // A token that is none of this store's cannot be followed either.
        json["syncTokenExpired"] != nil || json["reason"]?.string?.contains("sync continuation") == true
    }

    /// A key with its value and version; nil if a member is not what it has to be.
    private static func state(_ json: JSONValue) -> (key: PreferenceKey, value: PropertyValue?, version: ChangeTag?)? {
        guard let key = json["key"]?.string else { return nil }
        var value: PropertyValue?
        if let member = json["value"], !member.isNull {
            guard let read = try? PropertyValue(json: member, path: "value") else { return nil }
            value = read
        }
        var version: ChangeTag?
        if let text = json["version"]?.string {
            guard let tag = ChangeTag(text) else { return nil }
            version = tag
        }
        return (PreferenceKey(key), value, version)
    }

    private static func json(_ value: PropertyValue) -> JSONValue {
        var writer = JSONWriter()
        value.write(to: &writer)
        // What the writer wrote, the parser reads.
        return (try? JSONParser.parse(writer.bytes)) ?? .null
    }
}
