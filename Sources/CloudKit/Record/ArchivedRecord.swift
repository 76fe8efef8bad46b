import Foundation

/// A record on its way into an archive or out of it.
struct ArchivedRecord {
    var type: String
    var id: CKRecordID
    var state: RecordState

    init(type: String, id: CKRecordID, state: RecordState) {
        self.type = type
        self.id = id
        self.state = state
    }

    /// Nil where the archive holds no record.
    init?(coder: NSCoder) {
        guard let type = coder.text("RecordType"), let id = coder.object(CKRecordID.self, "RecordID")
        else { return nil }
        self.init(type: type, id: id, state: RecordState())
        var system = SystemFields(
            changeTag: coder.text("ChangeTag"), created: coder.stamp("Created"), modified: coder.stamp("Modified"))
        system.parent = coder.object(CKReference.self, "Parent")
        system.share = coder.object(CKReference.self, "Share")
        guard coder.containsValue(forKey: "Values") else {
            // No values are known, so a conflict's ancestor has none either.
            state = RecordState(
                ServerState(system: system, values: [:]), base: Self.base(system, values: [:], encryptedKeys: []),
                changedKeys: [], isParentChanged: false)
            return
        }
        guard let content = coder.codable(Content.self, "Values") else { return nil }
        var baseSystem = system
        if content.isParentChanged {
            baseSystem.parent = coder.object(CKReference.self, "BaseParent")
        }
        state = RecordState(
            ServerState(
                system: system, values: content.values.mapValues(\.value), encryptedKeys: Set(content.encryptedKeys)),
            base: Self.base(
                baseSystem, values: content.baseValues.mapValues(\.value),
                encryptedKeys: Set(content.baseEncryptedKeys)),
            changedKeys: content.changedKeys, isParentChanged: content.isParentChanged)
    }

    func encode(with coder: NSCoder, includingValues: Bool) {
        let system = includingValues ? state.system : state.base?.system ?? state.system
        coder.write(type, "RecordType")
        coder.write(id, "RecordID")
        coder.write(system.changeTag, "ChangeTag")
        coder.write(system.created, "Created")
        coder.write(system.modified, "Modified")
        coder.write(system.parent, "Parent")
        if let share = system.share { coder.write(share, "Share") }
        guard includingValues else { return }
        coder.write(state.base?.system.parent, "BaseParent")
        coder.write(codable: content, "Values")
    }

    private var content: Content {
        Content(
            values: state.values.mapValues(ArchivedValue.init), encryptedKeys: state.encryptedKeys.sorted(),
            changedKeys: state.changedKeys, isParentChanged: state.parentEdit != nil,
            baseValues: state.base?.values.mapValues(ArchivedValue.init) ?? [:],
            baseEncryptedKeys: state.base?.encryptedKeys.sorted() ?? [])
    }

    /// A record that never was on the server has no base.
    private static func base(
        _ system: SystemFields, values: [String: RecordValue], encryptedKeys: Set<String>
    ) -> ServerState? {
        system.changeTag == nil ? nil : ServerState(system: system, values: values, encryptedKeys: encryptedKeys)
    }

    /// What a whole record has beside its system fields.
    private struct Content: Codable {
        var values: [String: ArchivedValue]
        var encryptedKeys: [String]
        var changedKeys: [String]
        var isParentChanged: Bool
        var baseValues: [String: ArchivedValue]
        var baseEncryptedKeys: [String]
    }
}

extension NSCoder {
    fileprivate func stamp(_ key: String) -> SystemFields.Stamp? {
        guard let date = date(key + "Date") else { return nil }
        return SystemFields.Stamp(date: date, user: object(CKRecordID.self, key + "User"))
    }

    fileprivate func write(_ stamp: SystemFields.Stamp?, _ key: String) {
        guard let stamp else { return }
        write(stamp.date, key + "Date")
        write(stamp.user, key + "User")
    }
}
