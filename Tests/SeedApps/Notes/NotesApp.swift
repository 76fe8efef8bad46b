import CloudKit

/// A notes tool for the command line: notes are records of a zone of the private database, a copy of them is kept in
/// memory or on disk and follows the zone by its change token, and the order of the list is a preference that all
/// devices of the user share.
///
///     notes add "Buy milk" [body] notes list notes edit NAME BODY notes remove NAME notes sort title|newest
struct NotesApp {
    private static let zone = CKRecordZone(zoneName: "notes")
    private let database = CKContainer.default().privateCloudDatabase
    private let preferences = NSUbiquitousKeyValueStore.default
    private var copy: NotesCopy
    private let file: URL

    /// Opens the copy in a file; there need not be one yet.
    init(file: URL) {
        self.file = file
        copy =
            (try? Data(contentsOf: file)).flatMap { try? JSONDecoder().decode(NotesCopy.self, from: $0) } ?? NotesCopy()
    }

    /// Does what the arguments say, and gives the lines to print.
    mutating func run(_ arguments: [String]) async throws -> [String] {
        switch (arguments.first, arguments.count) {
        case ("add", 2...3):
            let record = CKRecord(recordType: "Note", recordID: CKRecord.ID(zoneID: Self.zone.zoneID))
            record["title"] = arguments[1]
            record["body"] = arguments.dropFirst(2).first
            try await database.save(Self.zone)
            try await database.save(record)
        case ("edit", 3):
            try await edit(CKRecord.ID(recordName: arguments[1], zoneID: Self.zone.zoneID), body: arguments[2])
        case ("remove", 2):
            try await database.deleteRecord(withID: CKRecord.ID(recordName: arguments[1], zoneID: Self.zone.zoneID))
        case ("sort", 2):
            preferences.set(arguments[1], forKey: "sort")
            try await preferences.synchronizeNow()
        case ("list", 1):
            break
        default:
            return ["notes add TITLE [BODY] | list | edit NAME BODY | remove NAME | sort title|newest"]
        }
        do {
            try await pull()
        } catch let error as CKError where [.networkUnavailable, .networkFailure].contains(error.code) {
            return ["offline; as of the last time:"] + lines()
        }
        return lines()
    }

    /// The notes of the copy, in the order that the user prefers.
    func lines() -> [String] {
        let byTitle = preferences.string(forKey: "sort") == "title"
        let notes = copy.notes.sorted {
            byTitle ? ($0.value.title, $0.key) < ($1.value.title, $1.key) : $0.value.changed > $1.value.changed
        }
        return notes.map { "\($0.key)  \($0.value.title)\($0.value.body.map { ": " + $0 } ?? "")" }
    }

    /// Changes a note, whatever others have done to it meanwhile.
    private func edit(_ id: CKRecord.ID, body: String) async throws {
        var record = try await database.record(for: id)
        while true {
            record["body"] = body
            do {
                try await database.save(record)
                return
            } catch let error as CKError where error.code == .serverRecordChanged {
                guard let theirs = error.serverRecord else { throw error }
                record = theirs
            }
        }
    }

    /// Brings the copy up to date, and keeps it.
    private mutating func pull() async throws {
        var more = true
        while more {
            do {
                let changes = try await database.recordZoneChanges(inZoneWith: Self.zone.zoneID, since: copy.token)
                for (id, result) in changes.modificationResultsByID {
                    copy.notes[id.recordName] = NotesCopy.Note(try result.get().record)
                }
                for deletion in changes.deletions { copy.notes[deletion.recordID.recordName] = nil }
                copy.token = changes.changeToken
                more = changes.moreComing
            } catch let error as CKError where [.changeTokenExpired, .zoneNotFound].contains(error.code) {
                // The zone was deleted, or so much has gone since that only a new copy is right.
                let isNew = copy.token == nil
                copy = NotesCopy()
                if isNew { break }
            }
        }
        try JSONEncoder().encode(copy).write(to: file, options: .atomic)
    }
}
