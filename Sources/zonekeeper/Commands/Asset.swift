import ArgumentParser
import Foundation
import RecordModel
import ServiceClient
import Synchronization

struct AssetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "asset", abstract: "Get the files of records, and show what they are.",
        discussion: """
            Files are sent with `zonekeeper record save --type TYPE photo:ASSET=@FILE`; photo:ASSET=record:NAME/FIELD \
            saves what another record of the zone has, without sending it.
            """,
        subcommands: [AssetGetCommand.self, AssetStatCommand.self])
}

struct AssetGetCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Write the file of a record's field to a file, or to standard output.",
        discussion: """
            Where a connection is lost, the rest is fetched from any node. The file appears under its name once it is \
            whole, and takes the place of one that is there.
            """)

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Argument(help: "The record's name.")
    var name: String

    @Argument(help: "The field.")
    var field: String

    @Option(help: "Which asset of a list, from 1.")
    var number = 1

    @Option(
        name: [.short, .long],
        help: ArgumentHelp("The file to write; `-`, which is usual, is standard output.", valueName: "file"))
    var output = "-"

    func validate() throws {
        if number < 1 { throw ValidationError("--number: 1 or more is expected") }
    }

    func run(on connection: Connection) async throws {
        guard output != "-" else {
            if isatty(STDOUT_FILENO) == 1 {
                throw ValidationError("standard output is a terminal: name a file with --output")
            }
            _ = try await fetch(to: AssetSink(stream: STDOUT_FILENO, name: "standard output"), on: connection)
            return
        }
        let draft = "\(output).part-\(UInt32.random(in: 0 ... .max))"
        let sink = try AssetSink(creating: draft)
        let asset = try await fetch(to: sink, on: connection)
        guard rename(draft, output) == 0 else {
            let problem = String(cString: strerror(errno))
            unlink(draft)
            throw CommandFailure("\(output) cannot be written: \(problem)")
        }
        try show(asset, "wrote \(output), \(Units.bytes(asset.size))")
    }

    private func fetch(to sink: AssetSink, on connection: Connection) async throws -> JSONValue {
        var asset = try await find(on: connection)
        let bar = AssetProgress(name: "\(name) \(field)", total: asset.size)
        do {
            var isRenewed = false
            while true {
                let url = try needed(asset["downloadURL"]?.string, "downloadURL")
                do {
                    try await connection.transfer.download(url, size: asset.size, to: sink) { bar.show($0) }
                    bar.finish()
                    return asset
                } catch let failure as ServiceFailure where failure.status == 410 && !isRenewed {
                    // The URL expired between two connections.
                    isRenewed = true
                    let renewed = try await find(on: connection)
                    guard renewed["fileChecksum"] == asset["fileChecksum"] else {
                        throw CommandFailure("the record got another file meanwhile; get it again")
                    }
                    asset = renewed
                }
            }
        } catch {
            bar.abandon()
            throw CommandFailure(transfer: error)
        }
    }

    private func find(on connection: Connection) async throws -> JSONValue {
        let record = try await StoredAssets.record(name, [field], in: place, on: connection).record
        let assets = StoredAssets.assets(of: record).filter { $0.field == field }
        guard number <= assets.count else {
            throw CommandFailure(
                assets.isEmpty
                    ? "the field \(field) of the record \(name) has no asset"
                    : "the field \(field) of the record \(name) has no asset \(number), but \(assets.count) in all")
        }
        return assets[number - 1].asset
    }
}

struct AssetStatCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "stat", abstract: "Show size and checksum of a record's assets, without fetching them.",
        discussion: "With --json also the URLs under which they can be read for an hour, by whoever has them.")

    @OptionGroup var options: ClientOptions
    @OptionGroup var place: RecordOptions

    @Argument(help: "The record's name.")
    var name: String

    @Argument(help: "The field; all of the record's without one.")
    var field: String?

    func run(on connection: Connection) async throws {
        let (response, record) = try await StoredAssets.record(name, field.map { [$0] }, in: place, on: connection)
        let assets = StoredAssets.assets(of: record)
        if assets.isEmpty {
            throw CommandFailure("\(field.map { "the field \($0) of " } ?? "")the record \(name) has no asset")
        }
        var table = Table("FIELD", "NUMBER", "SIZE", "BYTES", "CHECKSUM")
        for (field, number, asset) in assets {
            table.add([
                field, "\(number)", Units.bytes(asset.size), Units.count(asset.size), asset.text("fileChecksum"),
            ])
        }
        try show(response, table.text)
    }
}

enum StoredAssets {
    /// - Parameter keys: the fields; nil for all.
    static func record(
        _ name: String, _ keys: [String]?, in place: RecordOptions, on connection: Connection
    ) async throws -> (response: ServiceResponse, record: JSONValue) {
        let response = try await connection.send(
            try place.request(
                "records/lookup",
                [
                    "records": .array([.members(["recordName": .string(name)])]),
                    "desiredKeys": keys.map { .strings($0) },
                ], on: connection))
        let records = try response.records()
        if let failure = ServiceResponse.failures(in: records).first { throw CommandFailure(failure) }
        return (response, try needed(records.first, "record"))
    }

    /// Each asset with its field, and its number in a list.
    static func assets(of record: JSONValue) -> [(field: String, number: Int, asset: JSONValue)] {
        (record["fields"]?.members ?? []).flatMap { field -> [(field: String, number: Int, asset: JSONValue)] in
            guard let value = field.value["value"] else { return [] }
            let members = (value.array ?? [value]).filter { $0["fileChecksum"] != nil }
            return members.enumerated().map { (field.key, $0 + 1, $1) }
        }
    }
}

struct AssetUploads {
    var place: RecordOptions
    var recordType: String
    var recordName: String?

    /// - Returns: the fields, assets with what their uploads answered.
    /// - Throws: `CommandFailure` about a file or the cluster.
    func send(_ fields: [FieldArgument], on connection: Connection) async throws -> [FieldArgument] {
        var fields = fields
        for (place, field) in fields.enumerated() {
            guard let files = field.files else { continue }
            var assets: [JSONValue] = []
            for source in files.sources {
                switch source {
                case .file(let path): assets.append(try await send(path, for: field.name, on: connection))
                case .record(let name, let other): assets += try await copy(name, other, on: connection)
                }
            }
            guard files.isList || assets.count == 1 else {
                throw CommandFailure("\(field.name): one asset is expected, not \(assets.count): save an ASSET_LIST")
            }
            fields[place].json = .members([
                "value": files.isList ? .array(assets) : assets[0], "type": field.json["type"],
            ])
        }
        return fields
    }

    /// What saves the assets of another record's field again.
    private func copy(_ name: String, _ field: String, on connection: Connection) async throws -> [JSONValue] {
        let asset = JSONValue.members(["recordName": .string(name), "fieldName": .string(field)])
        let answer = try await connection.send(
            try place.request(
                "assets/rereference", ["assets": .array([asset]), "targetZoneID": place.zoneID], on: connection))
        let found = try answer.checked().entries("assets")
        if let failure = ServiceResponse.failures(in: found).first { throw CommandFailure(failure) }
        let value = try needed(found.first, "asset")
        return value.array ?? [value]
    }

    private func send(_ path: String, for field: String, on connection: Connection) async throws -> JSONValue {
        let source = try AssetSource(path: path)
        let token = JSONValue.members([
            "recordName": .given(recordName), "recordType": .string(recordType),
            "fieldName": .string(field), "size": .integer(source.size),
        ])
        let answer = try await connection.send(
            try place.request("assets/upload", ["tokens": .array([token])], on: connection))
        let tokens = try answer.checked().entries("tokens")
        if let failure = ServiceResponse.failures(in: tokens).first { throw CommandFailure(failure) }
        let url = try needed(tokens.first?["url"]?.string, "upload URL")
        let bar = AssetProgress(name: path, total: source.size)
        do {
            let asset = try await connection.transfer.upload(source, to: url) { bar.show($0) }
            bar.finish()
            return asset
        } catch {
            bar.abandon()
            throw CommandFailure(transfer: error)
        }
    }
}

/// How far a file has come, on a terminal only.
final class AssetProgress: Sendable {
    private let name: String
    private let total: Int64
    private let line = Mutex(ProgressLine())

    init(name: String, total: Int64) {
        self.name = name.shortened(to: 30)
        self.total = total
    }

    func show(_ bytes: Int64) {
        guard Console.isTerminal else { return }
        line.withLock { $0.show(Self.text(name, bytes, of: total)) }
    }

    func finish() {
        guard Console.isTerminal else { return }
        line.withLock { $0.finish(Self.text(name, total, of: total)) }
    }

    /// Ends the line, so that an error stands on its own.
    func abandon() { line.withLock { $0.abandon() } }

    private static let width = 24

    static func text(_ name: String, _ bytes: Int64, of total: Int64) -> String {
        let part = total > 0 ? Double(bytes) / Double(total) : 1
        let full = Int(part * Double(width))
        let bar = String(repeating: "#", count: full) + String(repeating: ".", count: width - full)
        return "\(name)  \(bar)  \(Int(part * 100))%  \(Units.bytes(bytes)) of \(Units.bytes(total))"
    }
}

extension Connection {
    var transfer: AssetTransfer {
        AssetTransfer(
            client: client, patienceSeconds: settings.patienceSeconds ?? ServiceRequest.patienceSecondsStandard)
    }
}

extension JSONValue {
    fileprivate var size: Int64 { amount("size") ?? 0 }
}

extension CommandFailure {
    fileprivate init(transfer error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let failure as ServiceFailure:
            let later = failure.retryAfterSeconds.map { " (try again in \(Units.seconds($0)))" } ?? ""
            self.init("\(failure.description)\(later)")
        default: self.init("\(error)")
        }
    }
}
