extension CKSyncEngine {
    /// What an engine tells its delegate.
    public enum Event: Sendable, CustomStringConvertible {
        /// The state changed, and is to be stored.
        case stateUpdate(StateUpdate)
        /// Another user signed in, or the user signed out.
        case accountChange(AccountChange)
        /// Zones changed or went.
        case fetchedDatabaseChanges(FetchedDatabaseChanges)
        /// Records changed or went.
        case fetchedRecordZoneChanges(FetchedRecordZoneChanges)
        /// Changes of zones were sent.
        case sentDatabaseChanges(SentDatabaseChanges)
        /// Changes of records were sent.
        case sentRecordZoneChanges(SentRecordZoneChanges)
        /// A fetch begins.
        case willFetchChanges(WillFetchChanges)
        /// The fetch of one zone begins.
        case willFetchRecordZoneChanges(WillFetchRecordZoneChanges)
        /// The fetch of one zone ended.
        case didFetchRecordZoneChanges(DidFetchRecordZoneChanges)
        /// A fetch ended.
        case didFetchChanges(DidFetchChanges)
        /// A send begins.
        case willSendChanges(WillSendChanges)
        /// A send ended.
        case didSendChanges(DidSendChanges)

        /// The state to store.
        public struct StateUpdate: Sendable {
            /// What an engine is to begin with at the next start.
            public let stateSerialization: CKSyncEngine.State.Serialization
        }

        /// How the account changed. The engine has forgotten its state, and what was pending.
        public struct AccountChange: Sendable {
            /// How the account changed.
            public enum ChangeType: Hashable, Sendable {
                /// A user signed in where there was none, or at the first start.
                case signIn(currentUser: CKRecord.ID)
                /// The user signed out.
                case signOut(previousUser: CKRecord.ID)
                /// Another user signed in.
                case switchAccounts(previousUser: CKRecord.ID, currentUser: CKRecord.ID)
            }

            /// How it changed.
            public let changeType: ChangeType
        }

        /// Zones that changed or went.
        public struct FetchedDatabaseChanges: Sendable {
            /// Zones in which something changed; their records follow.
            public let modifications: [CKDatabase.DatabaseChange.Modification]
            /// Zones that are gone.
            public let deletions: [CKDatabase.DatabaseChange.Deletion]
        }

        /// Records of one zone that changed or went.
        public struct FetchedRecordZoneChanges: Sendable {
            /// Records that were saved.
            public let modifications: [CKDatabase.RecordZoneChange.Modification]
            /// Records that are gone.
            public let deletions: [CKDatabase.RecordZoneChange.Deletion]
        }

        /// The outcome of changes of zones.
        public struct SentDatabaseChanges: Sendable {
            /// A zone that was not made.
            public struct FailedZoneSave: Sendable {
                /// The zone.
                public let zone: CKRecordZone
                /// Why.
                public let error: CKError
            }

            /// Zones that were made, or were there.
            public let savedZones: [CKRecordZone]
            /// Zones that were not made.
            public let failedZoneSaves: [FailedZoneSave]
            /// Zones that are gone.
            public let deletedZoneIDs: [CKRecordZone.ID]
            /// Zones that were not deleted, and why.
            public let failedZoneDeletes: [CKRecordZone.ID: CKError]
        }

        /// The outcome of changes of records.
        public struct SentRecordZoneChanges: Sendable {
            /// A record that was not saved.
            public struct FailedRecordSave: Sendable {
                /// The record.
                public let record: CKRecord
                /// Why; with `serverRecordChanged` it has the server's record.
                public let error: CKError
            }

            /// Records as the server has them now.
            public let savedRecords: [CKRecord]
            /// Records that were not saved. Those that may be saved later as they are stay pending; others are for the
            /// app to mend and to add again.
            public let failedRecordSaves: [FailedRecordSave]
            /// Records that are gone.
            public let deletedRecordIDs: [CKRecord.ID]
            /// Records that were not deleted, and why.
            public let failedRecordDeletes: [CKRecord.ID: CKError]
        }

        /// A fetch begins.
        public struct WillFetchChanges: Sendable {
            /// Why, and of what.
            public let context: FetchChangesContext
        }

        /// The fetch of a zone begins.
        public struct WillFetchRecordZoneChanges: Sendable {
            /// The zone.
            public let zoneID: CKRecordZone.ID
        }

        /// The fetch of a zone ended.
        public struct DidFetchRecordZoneChanges: Sendable {
            /// The zone.
            public let zoneID: CKRecordZone.ID
            /// Why it ended early; nil if all is there.
            public let error: CKError?
        }

        /// A fetch ended.
        public struct DidFetchChanges: Sendable {
            /// Why, and of what.
            public let context: FetchChangesContext
            /// Why it ended early; nil if it did not. Errors of single zones come with theirs. An addition of ours:
            /// nobody else is told where the engine fetched by itself.
            public let error: CKError?
        }

        /// A send begins.
        public struct WillSendChanges: Sendable {
            /// Why, and of what.
            public let context: SendChangesContext
        }

        /// A send ended.
        public struct DidSendChanges: Sendable {
            /// Why, and of what.
            public let context: SendChangesContext
            /// Why it ended early; nil if it did not. Errors of single changes come with what was sent. An addition of
            /// ours: nobody else is told where the engine sent by itself.
            public let error: CKError?
        }

        /// The text for logs; it holds no values of records.
        public var description: String {
            switch self {
            case .stateUpdate: "stateUpdate"
            case .accountChange(let event): "accountChange: \(event.changeType)"
            case .fetchedDatabaseChanges(let event):
                "fetchedDatabaseChanges: \(event.modifications.count) changed, \(event.deletions.count) deleted"
            case .fetchedRecordZoneChanges(let event):
                "fetchedRecordZoneChanges: \(event.modifications.count) changed, \(event.deletions.count) deleted"
            case .sentDatabaseChanges(let event):
                "sentDatabaseChanges: \(event.savedZones.count) saved, \(event.deletedZoneIDs.count) deleted, "
                    + "\(event.failedZoneSaves.count + event.failedZoneDeletes.count) failed"
            case .sentRecordZoneChanges(let event):
                "sentRecordZoneChanges: \(event.savedRecords.count) saved, \(event.deletedRecordIDs.count) deleted, "
                    + "\(event.failedRecordSaves.count + event.failedRecordDeletes.count) failed"
            case .willFetchChanges: "willFetchChanges"
            case .willFetchRecordZoneChanges(let event): "willFetchRecordZoneChanges: \(event.zoneID.zoneName)"
            case .didFetchRecordZoneChanges(let event):
                "didFetchRecordZoneChanges: \(event.zoneID.zoneName)" + Self.text(of: event.error)
            case .didFetchChanges(let event): "didFetchChanges" + Self.text(of: event.error)
            case .willSendChanges: "willSendChanges"
            case .didSendChanges(let event): "didSendChanges" + Self.text(of: event.error)
            }
        }

        private static func text(of error: CKError?) -> String { error.map { ", \($0)" } ?? "" }
    }

    /// Why an engine fetches or sends.
    public enum SyncReason: Hashable, Sendable {
        /// By itself.
        case scheduled
        /// As the app said so.
        case manual
    }

    /// Why the engine fetches, and what.
    public struct FetchChangesContext: Sendable {
        /// Why.
        public let reason: SyncReason
        /// What.
        public let options: FetchChangesOptions
    }

    /// What to fetch.
    public struct FetchChangesOptions: Sendable {
        /// Of which zones records are fetched. Which zones changed is always fetched.
        public enum Scope: Hashable, Sendable {
            /// All of them.
            case all
            /// All but these.
            case allExcluding([CKRecordZone.ID])
            /// These.
            case zoneIDs([CKRecordZone.ID])

            /// Whether the zone's records are fetched.
            public func contains(_ zoneID: CKRecordZone.ID) -> Bool {
                switch self {
                case .all: true
                case .allExcluding(let zones): !zones.contains(zoneID)
                case .zoneIDs(let zones): zones.contains(zoneID)
                }
            }
        }

        /// Of which zones.
        public var scope: Scope
        /// Zones to fetch before others.
        public var prioritizedZoneIDs: [CKRecordZone.ID] = []
        /// Whose defaults the requests take.
        public var operationGroup: CKOperationGroup?

        /// Everything, unless a scope says less.
        public init(scope: Scope = .all, operationGroup: CKOperationGroup? = nil) {
            self.scope = scope
            self.operationGroup = operationGroup
        }

        /// Whether another fetch that wants everything may take this one's result.
        var isWhole: Bool { scope == .all && operationGroup == nil }
    }

    /// Why the engine sends, and what.
    public struct SendChangesContext: Sendable {
        /// Why.
        public let reason: SyncReason
        /// What.
        public let options: SendChangesOptions
    }

    /// What to send.
    public struct SendChangesOptions: Sendable {
        /// Which of the pending changes are sent.
        public enum Scope: Hashable, Sendable {
            /// All of them.
            case all
            /// All but those of these zones.
            case allExcluding([CKRecordZone.ID])
            /// Those of these zones.
            case zoneIDs([CKRecordZone.ID])
            /// Those of these records; no changes of zones.
            case recordIDs([CKRecord.ID])

            /// Whether changes of the zone itself are sent.
            public func contains(_ zoneID: CKRecordZone.ID) -> Bool {
                switch self {
                case .all: true
                case .allExcluding(let zones): !zones.contains(zoneID)
                case .zoneIDs(let zones): zones.contains(zoneID)
                case .recordIDs: false
                }
            }

            /// Whether changes of the record are sent.
            public func contains(_ recordID: CKRecord.ID) -> Bool {
                if case .recordIDs(let records) = self { return records.contains(recordID) }
                return contains(recordID.zoneID)
            }

            /// Whether the change is sent.
            public func contains(_ pendingChange: CKSyncEngine.PendingRecordZoneChange) -> Bool {
                contains(pendingChange.recordID)
            }

            /// Whether the change is sent.
            public func contains(_ pendingChange: CKSyncEngine.PendingDatabaseChange) -> Bool {
                contains(pendingChange.zoneID)
            }
        }

        /// Which changes.
        public var scope: Scope
        /// Whose defaults the requests take.
        public var operationGroup: CKOperationGroup?

        /// Everything, unless a scope says less.
        public init(scope: Scope = .all, operationGroup: CKOperationGroup? = nil) {
            self.scope = scope
            self.operationGroup = operationGroup
        }
    }

    /// Changes of records that are sent together.
    public struct RecordZoneChangeBatch: Sendable {
        /// The records to save, where the server has no other version of them.
        public let recordsToSave: [CKRecord]
        /// The records to delete.
        public let recordIDsToDelete: [CKRecord.ID]
        /// Whether the changes of a zone are made wholly or not at all.
        public var atomicByZone: Bool

        /// The most changes of a batch that is made of pending changes: what the server takes in one request.
        static let changesMax = 200

        /// A batch of these changes.
        public init(
            recordsToSave: [CKRecord] = [], recordIDsToDelete: [CKRecord.ID] = [], atomicByZone: Bool = false
        ) {
            self.recordsToSave = recordsToSave
            self.recordIDsToDelete = recordIDsToDelete
            self.atomicByZone = atomicByZone
        }

        /// A batch of the first of these changes, as many as go in one request by their number and their bytes; nil if
        /// there are none.
        /// - Parameter recordProvider: gives a record to save, or nil to leave it out for now.
        public init?(
            pendingChanges: [CKSyncEngine.PendingRecordZoneChange],
            recordProvider: @Sendable (CKRecord.ID) async -> CKRecord?
        ) async {
            var saves: [CKRecord] = []
            var deletes: [CKRecord.ID] = []
            var room = BatchPlan.Room()
            filling: for change in pendingChanges {
                if saves.count + deletes.count == Self.changesMax { break }
                switch change {
                case .saveRecord(let id):
                    guard let record = await recordProvider(id) else { continue }
                    guard room.take(saving: record) else { break filling }
                    saves.append(record)
                case .deleteRecord(let id):
                    guard room.take(deleting: id) else { break filling }
                    deletes.append(id)
                }
            }
            if saves.isEmpty, deletes.isEmpty { return nil }
            self.init(recordsToSave: saves, recordIDsToDelete: deletes)
        }
    }
}
