import Foundation

/// What the server says of a record beside its values.
struct SystemFields: Sendable, Equatable {
    /// The version that the server has; nil for a record that was never saved.
    var changeTag: String?
    var created: Stamp?
    var modified: Stamp?
    var parent: CKReference?
    var share: CKReference?

    struct Stamp: Sendable, Equatable {
        var date: Date
        /// Nil where the server does not say.
        var user: CKRecordID?
    }
}

/// A record as the server has it: its system fields and all of its values.
struct ServerState: Sendable, Equatable {
    var system: SystemFields
    var values: [String: RecordValue]
    /// Which of the values are encrypted.
    var encryptedKeys: Set<String> = []
}

extension ServerState {
    /// Keeps the files of assets that the server still has, or has by now.
    /// - Parameter known: values with assets that may have files.
    mutating func keepFiles(of known: [String: RecordValue]...) {
        for (key, value) in values where value.hasAsset {
            let files = known.flatMap { $0[key]?.assets ?? [] }.filter { $0.fileURL != nil }
            values[key] = value.mapAssets { asset, _ in
                files.first { $0.content?.checksum == asset.content?.checksum }.map { asset.with(fileOf: $0) } ?? asset
            }
        }
    }
}

/// What of a record a save sent: an answer that has no more in it may be one to a writer who may not read the rest.
struct SentPart: Sendable {
    /// The keys that were set or removed by it.
    var keys: Set<String>
    /// Whether the parent was among it.
    var hasParent: Bool
}

/// All that can change in a record. A value: the record keeps one behind its lock.
///
/// Every edit gets a number, so that a save clears exactly the edits it sent and keeps those made while it was under
/// way, even where they set a key back to the value that was sent.
struct RecordState: Sendable {
    private(set) var system = SystemFields()
    private(set) var values: [String: RecordValue] = [:]
    private(set) var encryptedKeys: Set<String> = []
    /// The record as last known from the server, for the ancestor in a conflict; nil where it never was there.
    private(set) var base: ServerState?
    /// The number of the last edit of each key that was set or removed since the record was loaded or saved.
    private(set) var edits: [String: UInt64] = [:]
    private(set) var parentEdit: UInt64?
    private var lastEdit: UInt64 = 0

    init() {}

    init(_ server: ServerState) {
        system = server.system
        values = server.values
        encryptedKeys = server.encryptedKeys
        base = server
    }

    /// A record from an archive, with the edits that were not saved.
    init(_ current: ServerState, base: ServerState?, changedKeys: [String], isParentChanged: Bool) {
        self.init(current)
        self.base = base
        for key in changedKeys { noteEdit(key) }
        if isParentChanged { parentEdit = nextEdit() }
    }

    var changedKeys: [String] { edits.keys.sorted() }

    /// Sets a key's value in one of the two forms, or removes it; a key has only one of them.
    mutating func set(_ value: RecordValue?, forKey key: String, isEncrypted: Bool) {
        if value == nil, values[key] != nil, encryptedKeys.contains(key) != isEncrypted { return }
        values[key] = value
        if isEncrypted, value != nil { encryptedKeys.insert(key) } else { encryptedKeys.remove(key) }
        noteEdit(key)
    }

    /// Whether an edited key is encrypted: one that was removed as it was before.
    func isEncrypted(changed key: String) -> Bool {
        encryptedKeys.contains(key) || (values[key] == nil && base?.encryptedKeys.contains(key) == true)
    }

    /// The value of a key in one of the two forms.
    func value(forKey key: String, isEncrypted: Bool) -> RecordValue? {
        encryptedKeys.contains(key) == isEncrypted ? values[key] : nil
    }

    /// Takes other assets in place of the same ones: no edit.
    /// - Parameter other: gets an asset, its key and its place in a list; nil keeps it.
    mutating func replaceAssets(_ other: (CKAsset, String, Int) -> CKAsset?) {
        for (key, value) in values where value.hasAsset {
            var isChanged = false
            let changed = value.mapAssets { asset, index in
                guard let found = other(asset, key, index) else { return asset }
                isChanged = true
                return found
            }
            guard isChanged else { continue }
            values[key] = changed
            if base?.values[key] != nil, edits[key] == nil { base?.values[key] = changed }
        }
    }

    mutating func setParent(_ parent: CKReference?) {
        system.parent = parent
        parentEdit = nextEdit()
    }

    mutating func setShare(_ share: CKReference) { system.share = share }

    /// Takes over what the server has after a save of `sent`, an earlier state of this record. Keys that were edited
    /// since then keep their value here and stay changed.
    ///
    /// Answers of saves that were under way together may come in any order: of an answer that is older than what is
    /// known, by the date of its modification, only what was sent counts as saved.
    /// - Parameter part: what the save sent; nil where the answer tells all that the server has.
    mutating func saved(as server: ServerState, sent: RecordState, part: SentPart? = nil) {
        let server = part.map { completed(server, with: $0) } ?? server
        let later = edits.filter { key, edit in edit != sent.edits[key] }
        let laterParent = parentEdit == sent.parentEdit ? nil : parentEdit
        if !isNewer(than: server.system) {
            let (mine, parent, encrypted) = (values, system.parent, encryptedKeys)
            values = server.values
            encryptedKeys = server.encryptedKeys
            system = server.system
            base = server
            for key in later.keys {
                values[key] = mine[key]
                if encrypted.contains(key) { encryptedKeys.insert(key) } else { encryptedKeys.remove(key) }
            }
            if laterParent != nil { system.parent = parent }
        }
        edits = later
        parentEdit = laterParent
    }

    /// What the server has, where its answer has nothing beyond what was sent: the rest as it was known. The server
    /// tells the other values too where there are any and the writer may read them. Where it has none any more and the
    /// save wrote over another version, values stay here until the record is fetched: better than to lose them with
    /// every save.
    private func completed(_ server: ServerState, with part: SentPart) -> ServerState {
        guard let base, server.values.keys.allSatisfy({ part.keys.contains($0) }),
            part.hasParent || server.system.parent == nil
        else { return server }
        var server = server
        for (key, value) in base.values where !part.keys.contains(key) {
            server.values[key] = value
            if base.encryptedKeys.contains(key) { server.encryptedKeys.insert(key) }
        }
        if !part.hasParent { server.system.parent = base.system.parent }
        return server
    }

    private func isNewer(than other: SystemFields) -> Bool {
        guard let mine = system.modified?.date, let theirs = other.modified?.date else { return false }
        return mine > theirs
    }

    private mutating func noteEdit(_ key: String) { edits[key] = nextEdit() }

    private mutating func nextEdit() -> UInt64 {
        lastEdit += 1
        return lastEdit
    }
}
