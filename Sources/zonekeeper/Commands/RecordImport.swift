import ArgumentParser
import Foundation
import Glibc
import RecordModel
import ServiceClient

struct RecordImportCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Save the lines of a file as records, in batches.",
        discussion: """
            Each line is a JSON object of fields, plain ({"title": "Hello"}) or as Web Services have them \
            ({"title": {"value": "Hello", "type": "STRING"}}), with a "recordName" or without one; or a record as `job \
            export --format lines` writes it, of which files are left out. A batch is \
            repeated under one idempotency key while nodes fail over, so none is saved twice. Outside of custom zones a \
            refused line does not keep the others of its batch from being saved; each is named.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Argument(help: "The file; `-` for standard input.")
    var file: String

    @Option(help: "The record type.")
    var type: String

    @Option(help: "Records in a request, at most \(Limits.operationsMax).")
    var batch = Limits.operationsMax

    @Option(
        help: "What to do with a record whose name is there already: create (an error), forceUpdate or forceReplace.")
    var existing = RecordImport.Existing.forceReplace

    @Option(help: "The line to begin with, from 1, to go on after a failure.")
    var startLine = 1

    func validate() throws {
        guard (1...Limits.operationsMax).contains(batch) else {
            throw ValidationError("--batch: 1 to \(Limits.operationsMax) is expected")
        }
        if startLine < 1 { throw ValidationError("--start-line: 1 or more is expected") }
    }

    func run(on connection: Connection) async throws {
        let saved = try await RecordImport(
            options: place, recordType: type, existing: existing, batchCount: batch, startLine: startLine, path: file
        ).run(on: connection)
        if options.json { Console.print(JSONValue.members(["imported": .integer(Int64(saved))]).serialized()) }
    }
}

extension RecordImport.Existing: ExpressibleByArgument {}

/// Sends the lines of a file to a cluster as records, in batches.
struct RecordImport {
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

    private var place: String { path == "-" ? "standard input" : path }

    /// How long a batch is tried again while nodes fail over, in seconds.
    private static let patienceSeconds = 60.0
    /// A batch is sent before its body comes near the server's limit.
    private static let batchBytesMax = 2 << 20

    private struct Batch {
        var operations: [JSONValue] = []
        var lines: [Int] = []
        var bytes = 0
    }

    private struct Advance {
        var saved = 0
        /// Every line before this one is saved, but for those that were refused beside others of their batch.
        var resumeLine: Int
        var leavesOut = false
        /// The lines of a batch of which nobody knows what became of it.
        var doubtful: ClosedRange<Int>?

        var text: String {
            let doubt = doubtful.map {
                "lines \($0.lowerBound) to \($0.upperBound) may be saved: look before you repeat them"
            }
            if saved == 0 { return doubt ?? "nothing was saved" }
            let exception = leavesOut ? " but those above: bring these in by themselves" : ""
            let known = "\(saved) records are saved, every line before line \(resumeLine) among them\(exception)"
            return [known, doubt ?? "go on with --start-line \(resumeLine)"].joined(separator: "; ")
        }
    }

    /// - Returns: the number of records saved.
    /// - Throws: `CommandFailure` that names the line to go on from.
    func run(on connection: Connection) async throws -> Int {
        var reader = try LineReader(path: path)
        var progress = ProgressLine()
        var advance = Advance(resumeLine: startLine)
        var batch = Batch()
        do {
            while let line = try reader.next() {
                guard reader.line >= startLine, !line.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) else { continue }
                try add(line, number: reader.line, to: &batch)
                guard batch.operations.count == batchCount || batch.bytes > Self.batchBytesMax else { continue }
                try await send(batch, &advance, on: connection)
                batch = Batch()
                progress.show(Self.progressText(advance.saved, reader.readBytes, of: reader.totalBytes))
            }
            try await send(batch, &advance, on: connection)
        } catch let error where error is CommandFailure || error is ServiceClientError {
            progress.abandon()
            throw CommandFailure("\(error)\nerror: stopped: \(advance.text)")
        }
        progress.finish("imported \(advance.saved) records")
        return advance.saved
    }

    private static func progressText(_ saved: Int, _ bytes: Int, of total: Int?) -> String {
        guard let total, total > 0 else { return "imported \(saved) records" }
        return "imported \(saved) records, \(bytes * 100 / total)%"
    }

    private func add(_ line: [UInt8], number: Int, to batch: inout Batch) throws(CommandFailure) {
        let object: FieldsObject
        do throws(JSONError) {
            let json = try JSONParser.parse(line)
            do throws(CommandFailure) {
                object = try FieldsObject(json)
            } catch {
                throw JSONError(position: 0, expected: "an object of fields", found: error.message)
            }
        } catch {
            throw CommandFailure("\(place), line \(number): \(error)")
        }
        // Without a name nothing can be there already.
        let kind = object.recordName == nil ? Existing.create : existing
        batch.operations.append(
            .members([
                "operationType": .string(kind.rawValue),
                "record": .members([
                    "recordName": .given(object.recordName), "recordType": .string(recordType),
                    "parent": object.parent, "fields": object.fields,
                ]),
            ]))
        batch.lines.append(number)
        batch.bytes += line.count
    }

    /// Sends a batch, again and again under one idempotency key where the cluster says to.
    private func send(_ batch: Batch, _ advance: inout Advance, on connection: Connection) async throws {
        guard let first = batch.lines.first, let last = batch.lines.last else { return }
        var request = try options.modify(batch.operations, on: connection)
        request.patienceSeconds = connection.settings.patienceSeconds ?? Self.patienceSeconds
        request.waitsForConnection = true
        let records: [JSONValue]
        do {
            records = try await connection.send(request).records()
        } catch let failure as CommandFailure where failure.isOutcomeUnknown {
            advance.doubtful = first...last
            throw failure
        }
        let refused = zip(batch.lines, records).compactMap { line, record in
            ServiceResponse.failures(in: [record]).first.map { (line: line, text: "\(place), line \(line): \($0)") }
        }
        advance.saved += records.count - refused.count
        if refused.count < records.count {
            advance.resumeLine = last + 1
            advance.leavesOut = !refused.isEmpty
        }
        guard refused.isEmpty else { throw CommandFailure(Self.text(of: refused)) }
    }

    /// Each line that was refused, the first ones with the reason.
    private static func text(of refused: [(line: Int, text: String)]) -> String {
        let more = refused.dropFirst(5)
        let rest = more.isEmpty ? [] : ["and \(more.count) more, in line \(more.map(\.line).listed)"]
        return (refused.prefix(5).map(\.text) + rest).joined(separator: "\nerror: ")
    }
}

/// Reads a file line by line, however large it is.
struct LineReader: ~Copyable {
    /// The longest line: a record cannot be larger than the server's limit, in whatever form.
    static let lineBytesMax = 4 << 20

    private let file: UnsafeMutablePointer<FILE>
    private let path: String
    /// Of the file, in bytes; nil for standard input.
    let totalBytes: Int?
    /// Read so far, in bytes.
    private(set) var readBytes = 0
    /// The number of the last line read, from 1.
    private(set) var line = 0

    init(path: String) throws(CommandFailure) {
        self.path = path
        guard let file = path == "-" ? fdopen(dup(STDIN_FILENO), "r") : fopen(path, "r") else {
            throw CommandFailure("\(path) cannot be read: \(String(cString: strerror(errno)))")
        }
        self.file = file
        totalBytes = path == "-" ? nil : try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
    }

    deinit { fclose(file) }

    /// The next line without its line feed; nil at the end.
    mutating func next() throws(CommandFailure) -> [UInt8]? {
        var pointer: UnsafeMutablePointer<CChar>?
        var capacity = 0
        let count = getline(&pointer, &capacity, file)
        defer { free(pointer) }
        guard count > 0, let pointer else {
            if ferror(file) != 0 { throw CommandFailure("\(path) cannot be read: \(String(cString: strerror(errno)))") }
            return nil
        }
        line += 1
        readBytes += count
        guard count <= Self.lineBytesMax else {
            throw CommandFailure("\(path), line \(line): \(count) bytes, at most \(Self.lineBytesMax) in a line")
        }
        var bytes = UnsafeBufferPointer(start: pointer, count: count).map { UInt8(bitPattern: $0) }
        while let last = bytes.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") { bytes.removeLast() }
        return bytes
    }
}
