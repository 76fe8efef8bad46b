package import GRDB
import KeyValueStore
import RecordModel
import RecordStore
import Synchronization
import Wire

/// A shard: the records and preferences of the zones and stores in its slots, in one database.
package final class ShardMachine: StateMachine {
    /// Belongs to the open database file; a snapshot brings another.
    private let tables = Mutex(RecordTables())

    package init() {}

    package func createTables(in db: Database) throws {
        try RecordTables.create(in: db)
        try KeyValueTables.create(in: db)
    }

    package func apply(_ commands: [[UInt8]], in db: Database) throws -> [[UInt8]] {
        let tables = tables.withLock(\.self)
        var transaction = try tables.begin(in: db)
        var outcomes: [[UInt8]] = []
        outcomes.reserveCapacity(commands.count)
        for command in commands { outcomes.append(try apply(command, in: &transaction, of: tables, db)) }
        try transaction.finish()
        return outcomes
    }

    private func apply(
        _ command: [UInt8], in transaction: inout RecordTransaction, of tables: RecordTables, _ db: Database
    ) throws -> [UInt8] {
        let decoded: ShardCommand
        do throws(WireError) {
            decoded = try ShardCommand(decoding: command)
        } catch {
            return RecordOutcome.refused(ServiceError(.internalError, "unreadable command: \(error)")).encoded()
        }
        switch decoded {
        case .record(let command): return try transaction.apply(command).encoded()
        case .keyValue(let command): return try KeyValueTables.apply(command, in: db).encoded()
        case .startIncarnation(let incarnation):
            // It changes rows that an open transaction holds copies of.
            try transaction.finish()
            try RecordTables.startNewIncarnation(incarnation, in: db)
            transaction = try tables.begin(in: db)
            _ = try KeyValueTables.startNewIncarnation(incarnation, in: db)
            return []
        }
    }

    package func didCommit() {}

    package func didRollBack() { tables.withLock { $0 = RecordTables() } }

    package func didReplace(_ db: Database) throws { tables.withLock { $0 = RecordTables() } }

    package func hashState(in db: Database, into fold: (UnsafeRawBufferPointer) -> Void) throws {
        try RecordTables.stateHash(in: db) { bytes in bytes.withUnsafeBytes { fold($0) } }
        try KeyValueTables.stateHash(in: db, into: fold)
    }

    package func read(_ request: [UInt8], in db: Database) throws -> [UInt8] {
        let answer: ReadAnswer
        switch try ShardRead(decoding: request) {
        case .lookup(let lookup): answer = try self.lookup(lookup, in: db)
        case .query(let query, let rendering): answer = try self.query(query, rendering, in: db)
        case .zones(let database):
            let states = try RecordTables.zones(of: database, in: db)
            answer = .found(ZoneStates(states: states).encoded(), cursor: nil)
        case .zone(let zone):
            let state = try RecordTables.zone(zone, in: db)
            answer = .found(ZoneStates(states: state.map { [$0] } ?? []).encoded(), cursor: nil)
        case .keyValue(let store, let read): answer = try KeyValueAnswers.answer(read, of: store, in: db)
        }
        return answer.encoded()
    }

    /// An answer has to fit a frame between nodes.
    private static let answerBytesMax = 6 << 20
    private static let tooMuch = ServiceError(
        .badRequest, "the records asked for are too large for one answer; ask for fewer of them, or for desiredKeys")

    private func lookup(_ lookup: ShardRead.RecordLookup, in db: Database) throws -> ReadAnswer {
        let names = lookup.items.map(\.name)
        let outcome = try tables.withLock(\.self).lookup(
            names, zone: lookup.zone, schemaVersion: lookup.schemaVersion, caller: lookup.caller, in: db)
        switch outcome {
        case .needsSchema(let installed): return .needsSchema(installed: installed)
        case .refused(let error): return .refused(error)
        case .found(let items):
            var writer = JSONWriter()
            writer.beginArray()
            for (item, wanted) in zip(items, lookup.items) {
                switch item {
                case .record(let record):
                    guard writer.bytes.count + record.fields.sizeBytes * 2 <= Self.answerBytesMax else {
                        writer.recordError(recordName: wanted.name, Self.tooMuch)
                        continue
                    }
                    writer.record(
                        record, desiredKeys: wanted.rendering.desiredKeys,
                        numbersAsStrings: wanted.rendering.numbersAsStrings)
                case .failed(let error): writer.recordError(recordName: wanted.name, error)
                }
            }
            writer.endArray()
            return .found(writer.bytes, cursor: nil)
        }
    }

    private func query(_ query: RecordQuery, _ rendering: ShardRead.Rendering, in db: Database) throws -> ReadAnswer {
        switch try tables.withLock(\.self).query(query, in: db) {
        case .needsSchema(let installed): return .needsSchema(installed: installed)
        case .refused(let error): return .refused(error)
        case .found(let page):
            var writer = JSONWriter(capacity: 512 * page.records.count)
            writer.beginArray()
            for record in page.records {
                writer.record(
                    record, desiredKeys: rendering.desiredKeys, numbersAsStrings: rendering.numbersAsStrings)
            }
            writer.endArray()
            return .found(writer.bytes, cursor: page.next)
        }
    }
}
