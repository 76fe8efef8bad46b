import CloudKit

/// What the notes tool keeps on disk: the notes, and the token that says up to where they are known.
struct NotesCopy: Codable {
    struct Note: Codable, Equatable {
        var title: String
        var body: String?
        var changed: Date

        init(_ record: CKRecord) {
            title = record["title"] as? String ?? ""
            body = record["body"] as? String
            changed = record.modificationDate ?? .distantPast
        }
    }

    var notes: [String: Note] = [:]
    private var archivedToken: Data?

    /// Where the next look at the zone's changes goes on; nil for all of them.
    var token: CKServerChangeToken? {
        get {
            archivedToken.flatMap {
                try? NSKeyedUnarchiver.unarchivedObject(ofClass: CKServerChangeToken.self, from: $0)
            }
        }
        set {
            archivedToken = newValue.flatMap {
                try? NSKeyedArchiver.archivedData(withRootObject: $0, requiringSecureCoding: true)
            }
        }
    }
}
