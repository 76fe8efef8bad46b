extension CKRecord {
    /// The record types that every schema has.
    public enum SystemType {
        /// The type of the records that stand for users.
        public static let userRecord: CKRecord.RecordType = "Users"
        /// The type of shares.
        public static let share: CKRecord.RecordType = "cloudkit.share"
    }

    /// The names by which queries speak of what every record has.
    public enum SystemFieldKey {
        /// The record's ID.
        public static let recordID: CKRecord.FieldKey = "recordID"
        /// When it was first saved.
        public static let creationDate: CKRecord.FieldKey = "creationDate"
        /// Who saved it first.
        public static let creatorUserRecordID: CKRecord.FieldKey = "creatorUserRecordID"
        /// When it was last saved.
        public static let modificationDate: CKRecord.FieldKey = "modificationDate"
        /// Who saved it last.
        public static let lastModifiedUserRecordID: CKRecord.FieldKey = "lastModifiedUserRecordID"
        /// Its parent in a hierarchy.
        public static let parent: CKRecord.FieldKey = "parent"
        /// The share it is the root of.
        public static let share: CKRecord.FieldKey = "share"
    }
}
