import RecordModel
import ServiceClient

/// Sends the lines of a file to a cluster as records, in batches.
struct RecordImport {
    /// What becomes of a record that is there already.
    enum Existing: String, CaseIterable {
        /// It is an error.
        case create
        /// The line's fields are set, others stay.
        case forceUpdate
        /// The line's fields are all that is left.
        case forceReplace
    }

    var options: RecordOptions
    var recordType: String
    var existing: Existing
    var batchCount: Int
    /// Lines before this one, counted from 1, were saved before.
    var startLine: Int
    var path: String

    /// How long a batch is tried again while nodes fail over, in seconds.
    private static let patienceSeconds = 60.0
    /// A batch is sent before its body comes near the server's limit.
    private static let batchBytesMax = 2 << 20

    /// Lines on their way.
    private struct Batch {
        var operations: [JSONValue] = []
        var lines: [Int] = []
        var bytes = 0
    }

    /// Sends every line.
    /// - Returns: the number of records saved.
    /// - Throws: `CommandFailure` that names the line to go on from.
    func run(on connection: Connection) async throws -> Int {
        var reader = try LineReader(path: path)
        var progress = ProgressLine()
        var saved = 0
        var batch = Batch()
        var resumeLine = startLine
        do {
            while let line = try reader.next() {
                guard reader.line >= startLine, !line.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) else { continue }
                try add(line, number: reader.line, to: &batch)
                guard batch.operations.count == batchCount || batch.bytes > Self.batchBytesMax else { continue }
                saved += try await send(batch, on: connection)
                batch = Batch()
                resumeLine = reader.line + 1
                progress.show(Self.progressText(saved, reader.readBytes, of: reader.totalBytes))
            }
            if !batch.operations.isEmpty { saved += try await send(batch, on: connection) }
        } catch let failure as CommandFailure {
            progress.abandon()
            throw CommandFailure(
                "\(failure.message)\nerror: stopped: \(saved) records are saved, every line before line \(resumeLine) among "
                    + "them; go on with --start-line \(resumeLine)")
        }
        progress.finish("imported \(saved) records")
        return saved
    }

    private static func progressText(_ saved: Int, _ bytes: Int, of total: Int?) -> String {
        guard let total, total > 0 else { return "imported \(saved) records" }
        return "imported \(saved) records, \(bytes * 100 / total)%"
    }

    private func add(_ line: [UInt8], number: Int, to batch: inout Batch) throws(CommandFailure) {
        let object: (recordName: String?, fields: JSONValue)
        do throws(JSONError) {
            let json = try JSONParser.parse(line)
            do throws(CommandFailure) {
                object = try FieldsObject.read(json)
            } catch {
                throw JSONError(position: 0, expected: "an object of fields", found: error.message)
            }
        } catch {
            throw CommandFailure("\(path), line \(number): \(error)")
        }
        // Without a name nothing can be there already.
        let kind = object.recordName == nil ? Existing.create : existing
        batch.operations.append(
            .members([
                "operationType": .string(kind.rawValue),
                "record": .members([
                    "recordName": object.recordName.map { .string($0) }, "recordType": .string(recordType),
                    "fields": object.fields,
                ]),
            ]))
        batch.lines.append(number)
        batch.bytes += line.count
    }

    /// Sends a batch, again and again under one idempotency key where the cluster says to.
    private func send(_ batch: Batch, on connection: Connection) async throws -> Int {
        var request = try options.modify(batch.operations, on: connection)
        request.patienceSeconds = Self.patienceSeconds
        request.waitsForConnection = true
        let records = try await connection.send(request).records()
        var problems: [String] = []
        for (line, record) in zip(batch.lines, records) {
            guard let failure = ServiceResponse.failures(in: [record]).first else { continue }
            problems.append("\(path), line \(line): \(failure)")
        }
        guard problems.isEmpty else {
            let shown = problems.prefix(5).joined(separator: "\nerror: ")
            throw CommandFailure(problems.count > 5 ? "\(shown)\nerror: and \(problems.count - 5) more" : shown)
        }
        return records.count
    }
}
