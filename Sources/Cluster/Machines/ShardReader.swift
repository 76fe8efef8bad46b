package import Directory
import GRDB
package import RecordModel
import RecordStore
import Wire

/// Answers a shard's reads from one snapshot of its database, records as JSON.
struct ShardReader {
    let tables: RecordTables
    let vault: FieldVault
    let db: Database
    private let records: RecordReads
    private let lacking = Lacking()

    /// The first thing of the directory that a read needs and this node has not heard of.
    private final class Lacking {
        var error: ServiceError?

        func note(_ new: ServiceError) { if error == nil { error = new } }
    }

    init(tables: RecordTables, vault: FieldVault, db: Database) {
        self.tables = tables
        records = RecordReads(tables, in: db)
        self.vault = vault
        self.db = db
    }

    /// Of records that are looked up, with those for which the answer has no room: more is not rendered in vain.
    private static let lookupBytesMax = 2 * QueryLimits.answerBytesMax
    /// Of a page's answer.
    private let pageBytesMax = QueryTuning.current.answerBytesMax
    private static let lostKey = ServiceError(
        .internalError,
        "an encrypted field of the record was sealed by a key that the cluster does not have: restore the record, or the "
            + "directory, from a backup")
    private static let unknownSecret = ServiceError(
        .tryAgainLater, "the cluster's secret has not reached this node yet", retryAfterSeconds: 1)
    private static let tooMuch = ServiceError(
        .badRequest, "the records asked for are too large for one answer; ask for fewer of them, or for desiredKeys",
        detail: .tooLongAnswer)

    /// What tokens are sealed and downloads signed with. A node that has not heard of it, as one that has just joined,
    /// must not hand out what the others refuse.
    private var secret: ClusterSecret? {
        let secret = vault.secret
        if secret == nil { lacking.note(Self.unknownSecret) }
        return secret
    }

    /// - Throws: `DirectoryBehind` where this node has not heard of a key that a record was sealed by, or of the
    ///   cluster's secret.
    func answer(to read: ShardRead) throws -> ReadAnswer {
        let answer = try answer(read)
        guard let error = lacking.error else { return answer }
        throw DirectoryBehind(answer: answer.encoded(), refusal: ReadAnswer.refused(error).encoded())
    }

    private func logReader(_ name: String, of subscriber: DatabaseKey) throws -> ReadAnswer {
        .found(ShardAnswer(try LogReader.find(name, of: subscriber, in: db)?.encoded() ?? []))
    }

    private func indexes(_ key: SchemaKey, _ version: UInt64) throws -> ReadOutcome<[IndexState]> {
        try IndexState.all(
            container: key.container, environment: key.environment, schemaVersion: version, from: tables, in: db)
    }

    private func earlierOutcome(of command: ModifyRecords) throws -> [UInt8] {
        try EarlierOutcomes(tables, in: db).find(command)?.encoded() ?? []
    }

    private static func found(_ value: some WireCodable) -> ReadAnswer { .found(ShardAnswer(value.encoded())) }

    private func answer(_ read: ShardRead) throws -> ReadAnswer {
        switch read {
        case .lookup(let lookup): try self.lookup(lookup)
        case .query(let query, let rendering): try self.query(query, rendering)
        case .databaseQuery(let query, let rendering): try databaseQuery(query, rendering)
        case .zoneChanges(let request, let rendering): try zoneChanges(request, rendering)
        case .versions(let request, let rendering): try versions(request, rendering)
        case .databaseChanges(let request):
            found(try ChangeReads(tables, in: db).databaseChanges(request)) { ShardAnswer($0.encoded()) }
        case .zones(let database, let version):
            found(try records.zones(of: database, schemaVersion: version)) {
                ShardAnswer(ShardList($0).encoded())
            }
        case .zone(let zone, let version):
            found(try records.zone(zone, schemaVersion: version)) {
                ShardAnswer(ShardList($0.map { [$0] } ?? []).encoded())
            }
        case .indexes(let key, let version):
            found(try indexes(key, version)) { ShardAnswer(ShardList($0).encoded()) }
        case .usage(let request):
            Self.found(try UsageCounts.page(request, level: AppliedRow.level(of: db), in: db))
        case .ledger(let database): Self.found(try LedgerState(of: database, in: db))
        case .earlierOutcome(let command): .found(ShardAnswer(try earlierOutcome(of: command)))
        case .keyValue(let store, let read, let numbersAsStrings):
            try KeyValueReader(numbersAsStrings: numbersAsStrings).answer(read, of: store, secret, in: db)
        case .subscriptions(let read):
            Self.found(
                ShardList(
                    try Subscribers.subscriptions(of: read.subscriber, scope: read.scope, ids: read.ids, in: db)))
        case .notifications(let read): try NotificationReader.answer(read, secret, in: db)
        case .logReader(let user, let name): try logReader(name, of: user)
        case .subscribers(let read): Self.found(try SubscriberPage(read, in: db))
        case .isDelivered(let marks): .found(ShardAnswer([try WaitingEffects.isDelivered(marks, in: db) ? 1 : 0]))
        case .hasSentCopies: .found(ShardAnswer([try Subscribers.hasSentCopies(in: db) ? 1 : 0]))
        case .countsAsset(let sha256): .found(ShardAnswer([try AssetTables.keeps(sha256, in: db) ? 1 : 0]))
        case .level: .found(ShardAnswer([UInt8(clamping: try AppliedRow.level(of: db).rawValue)]))
        }
    }

    private func found<Value>(
        _ outcome: ReadOutcome<Value>, _ answer: (Value) -> ShardAnswer
    ) -> ReadAnswer {
        switch outcome {
        case .needsSchema(let installed): .needsSchema(installed: installed)
        case .refused(let error): .refused(error)
        case .found(let value): .found(answer(value))
        }
    }

    private func lookup(_ lookup: ShardRead.RecordLookup) throws -> ReadAnswer {
        let names = lookup.items.map(\.name)
        let outcome = try records.lookup(
            names, zone: lookup.zone, schemaVersion: lookup.schemaVersion, caller: lookup.caller)
        return found(outcome) { items in
            var writer = JSONWriter()
            var (denials, rendered) = (0, 0)
            writer.beginArray()
            for (item, wanted) in zip(items, lookup.items) {
                switch item {
                case .record(let record):
                    let before = writer.bytes.count
                    if rendered <= Self.lookupBytesMax {
                        let isThere = writer.fits(QueryLimits.answerBytesMax) { writer in
                            write(record, in: lookup.zone, wanted.rendering, to: &writer)
                            rendered += writer.bytes.count - before
                        }
                        if isThere { continue }
                    }
                    writer.recordError(recordName: wanted.name, Self.tooMuch)
                case .failed(let error):
                    if error.code == .accessDenied { denials += 1 }
                    writer.recordError(recordName: wanted.name, error)
                }
            }
            writer.endArray()
            var answer = ShardAnswer(writer.bytes)
            answer.denials = denials
            return answer
        }
    }

    private func query(_ query: RecordQuery, _ rendering: ShardRead.Rendering) throws -> ReadAnswer {
        var writer = JSONWriter()
        var count = 0
        writer.beginArray()
        let outcome = try records.query(query) { record in
            let isThere = writer.fits(pageBytesMax) { writer in
                write(record, in: query.zone, rendering, to: &writer)
            }
            if isThere { count += 1 }
            return isThere
        }
        return found(outcome) { page in
            writer.endArray()
            var answer = ShardAnswer(writer.bytes, cursor: page.next)
            answer.count = count
            if let explanation = page.explanation {
                var writer = JSONWriter()
                explanation.write(to: &writer)
                answer.explanation = writer.bytes
            }
            return answer
        }
    }

    private func databaseQuery(_ query: DatabaseQuery, _ rendering: ShardRead.Rendering) throws -> ReadAnswer {
        found(try records.query(query)) { page in
            var ranked: [RankedRecord] = []
            var bytes = 0
            for item in page.items {
                var writer = JSONWriter(capacity: 512)
                let zone = ZoneKey(database: query.database, name: item.zone)
                write(item.record, in: zone, rendering, showsZone: true, to: &writer)
                bytes += writer.bytes.count + item.position.count
                if bytes > pageBytesMax, let last = ranked.last {
                    return ShardAnswer(ShardList(ranked).encoded(), cursor: last.position)
                }
                ranked.append(RankedRecord(position: item.position, json: writer.bytes))
            }
            return ShardAnswer(ShardList(ranked).encoded(), cursor: page.next)
        }
    }

    private func zoneChanges(_ request: ZoneChangesRequest, _ rendering: ShardRead.Rendering) throws -> ReadAnswer {
        var writer = JSONWriter()
        var count = 0
        writer.beginArray()
        let outcome = try ChangeReads(tables, in: db).zoneChanges(request) { entry in
            let isThere = writer.fits(pageBytesMax) { writer in
                switch entry {
                case .record(let record): write(record, in: request.zone, rendering, to: &writer)
                case .deleted(let name, _, let changeTag): writer.tombstone(recordName: name, changeTag: changeTag)
                }
            }
            if isThere { count += 1 }
            return isThere
        }
        return found(outcome) { page in
            writer.endArray()
            var answer = ShardAnswer(writer.bytes, cursor: page.token, hasMore: page.moreComing)
            answer.count = count
            return answer
        }
    }

    private func versions(_ request: VersionsRequest, _ rendering: ShardRead.Rendering) throws -> ReadAnswer {
        var writer = JSONWriter()
        writer.beginArray()
        let outcome = try EarlierVersions.read(request, from: tables, in: db) { version in
            writer.fits(pageBytesMax) { writer in
                writer.recordVersion(replaced: version.replaced, isDeletion: version.isDeletion) { writer in
                    write(version.record, in: request.zone, rendering, to: &writer)
                }
            }
        }
        return found(outcome) { hasMore in
            writer.endArray()
            return ShardAnswer(writer.bytes, hasMore: hasMore)
        }
    }

    /// Writes a record with those of its encrypted values opened that are to be shown. One that does not open is that
    /// record's error; the other records are not affected. Where its key is not here, that is noted: it may be on its
    /// way.
    private func write(
        _ record: RecordModel.Record, in zone: ZoneKey, _ rendering: ShardRead.Rendering, showsZone: Bool = false,
        to writer: inout JSONWriter
    ) {
        let owner = zone.database.scope == .public ? nil : zone.database.owner
        let shownZone = showsZone ? ZoneID(name: zone.name, owner: owner) : nil
        do throws(ServiceError) {
            writer.record(
                // What stays sealed is not written.
                rendering.leavesSealed
                    ? record : try vault.opened(record, in: zone, desiredKeys: rendering.desiredKeys),
                desiredKeys: rendering.desiredKeys, numbersAsStrings: rendering.numbersAsStrings,
                zone: shownZone,
                assets: record.fields.assets.isEmpty ? nil : secret?.presenter(of: zone, as: rendering.assets))
        } catch {
            let lacksKey = error.code == .tryAgainLater
            if lacksKey { lacking.note(error) }
            writer.recordError(recordName: record.name, lacksKey ? Self.lostKey : error, zone: shownZone)
        }
    }
}

extension JSONWriter {
    /// Writes an element of an array, and takes it back where all that is written has become too large with it; but
    /// never the first element. Returns whether it is there.
    fileprivate mutating func fits(
        _ bytesMax: Int, _ element: (inout JSONWriter) -> Void
    ) -> Bool {
        let before = bytes.count
        element(&self)
        guard bytes.count > bytesMax, before > 1 else { return true }
        cut(to: before)
        return false
    }
}

extension ClusterSecret {
    /// Makes the dictionaries of a zone's assets.
    package func presenter(of zone: ZoneKey, as rendering: ShardRead.AssetRendering) -> AssetPresenter? {
        let container = zone.database.container
        switch rendering {
        case .sizes: return nil
        case .checksums: return AssetPresenter { asset, _ in dictionary(of: asset, in: container) }
        case .links(let origin, let expires):
            return AssetPresenter { asset, field in
                let ticket = AssetDownloadTicket(asset: asset, zone: zone, expires: expires)
                var dictionary = dictionary(of: asset, in: container)
                dictionary.downloadURL = AssetURL.download(ticket, self, origin: origin, field: field)
                return dictionary
            }
        case .linksAndReceipts(let origin, let user, let expires):
            return AssetPresenter { asset, field in
                let ticket = AssetDownloadTicket(asset: asset, zone: zone, expires: expires)
                let receipt = AssetReceipt(asset: asset, zone: zone, user: user, expires: expires)
                var dictionary = dictionary(of: asset, in: container)
                dictionary.receipt = self.dictionary(of: receipt).receipt
                dictionary.downloadURL = AssetURL.download(ticket, self, origin: origin, field: field)
                return dictionary
            }
        case .receipts(let target, let user, let expires):
            return AssetPresenter { asset, _ in
                dictionary(of: AssetReceipt(asset: asset, zone: target, user: user, expires: expires))
            }
        }
    }
}

extension FieldVault {
    /// The record with its encrypted values in the clear.
    /// - Parameter desiredKeys: the fields that are to be shown; others stay as they are. Nil is all.
    /// - Throws: what `open` throws, for the first value that cannot be opened.
    package func opened(
        _ record: RecordModel.Record, in zone: ZoneKey, desiredKeys: [String]? = nil
    ) throws(ServiceError) -> RecordModel.Record {
        var record = record
        record.fields = try opened(record.fields, of: record.name, in: zone, desiredKeys: desiredKeys)
        return record
    }

    /// A record's fields with the encrypted values in the clear.
    package func opened(
        _ fields: Fields, of recordName: String, in zone: ZoneKey, desiredKeys: [String]? = nil
    ) throws(ServiceError) -> Fields {
        var opened = fields
        for field in fields.all {
            guard case .sealed = field.value, desiredKeys?.contains(field.name) ?? true else { continue }
            opened[field.name] = try open(
                field.value, container: zone.database.container,
                place: FieldPlace(zone: zone, recordName: recordName, field: field.name))
        }
        return opened
    }
}
