import Foundation
import RecordModel
import ServiceClient
import Synchronization
import Wire

/// What the changes of a long-lived operation are known by: the same after each start of the program, so that what was
/// done before it ended is not done again. Its receipts are a part of that.
struct LongLivedKeys: Codable, Hashable, Sendable {
    /// When the operation began, in milliseconds since 1970.
    var began: Int64
    /// Random, so that no other operation has the same keys.
    var seed: [UInt64]
    /// Those with which its changes are sent; nil before they are there.
    var receipts: AssetReceipts?

    /// How long servers know a key and take a receipt, less an hour for their clocks.
    private static let knownMilliseconds: Int64 = 23 * 3_600_000

    init(now: Int64 = WallClock.now) {
        began = now
        seed = [.random(in: .min ... .max), .random(in: .min ... .max)]
    }

    /// The key of a request: the same for the same action and body; a new one where servers have forgotten by now what
    /// they were sent.
    func key(for action: String, _ body: [UInt8], now: Int64 = WallClock.now) -> String {
        guard seed.count == 2, isKnown(now) else { return IdempotencyKeys.make(now: now) }
        let request = Array(action.utf8) + [0] + body
        let random = (seed[0] ^ fnv1a(request), seed[1] ^ fnv1a([1] + request))
        return UUIDv7(milliseconds: began, random: random).text
    }

    /// The receipts, while servers know the keys of the requests that had them.
    func knownReceipts(now: Int64 = WallClock.now) -> AssetReceipts? { isKnown(now) ? receipts : nil }

    private func isKnown(_ now: Int64) -> Bool { abs(now - began) < Self.knownMilliseconds }
}

/// An operation as it is kept on disk.
struct LongLivedCopy: Codable, Sendable {
    /// The form of what follows.
    var version = 1
    var id: CKOperation.ID
    /// The name of the operation's class.
    var operation: String
    var keys: LongLivedKeys
    /// What it is to do, as an archive.
    var work: Data
}

/// The long-lived operations of one user of a container, a file each, which is there until the operation ends.
///
/// Files are for their owner's eyes only: they hold records, encrypted values too.
struct LongLivedStore: Sendable {
    /// Need not exist.
    let folder: String

    /// The folder that holds those of all containers. Tests have one of their own.
    static let root = Mutex(DataFolder.path(ProcessInfo.processInfo.environment) + "/operations")

    init(container: String, environment: String, user: String) {
        folder = Self.folder(container, environment) + "/" + DataFolder.fileName(user)
    }

    /// The folder of all users of a container.
    fileprivate static func folder(_ container: String, _ environment: String) -> String {
        ([root.withLock { $0 }] + [container, environment].map { DataFolder.fileName($0) }).joined(separator: "/")
    }

    private static let ending = ".json"

    private func path(_ id: CKOperation.ID) -> String { "\(folder)/\(DataFolder.fileName(id))\(Self.ending)" }

    /// The IDs of the operations, the oldest first.
    func ids() -> [CKOperation.ID] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let copies = names.filter { $0.hasSuffix(Self.ending) }.compactMap { Self.read("\(folder)/\($0)") }
        return copies.sorted { ($0.keys.began, $0.id) < ($1.keys.began, $1.id) }.map(\.id)
    }

    /// An operation; nil if there is none, or its file cannot be read.
    func copy(of id: CKOperation.ID) -> LongLivedCopy? { Self.read(path(id)) }

    /// Writes an operation. When this returns, it is on disk.
    /// - Throws: what the file system says.
    func save(_ copy: LongLivedCopy) throws {
        try Self.write(copy, to: path(copy.id), in: folder)
    }

    /// Writes a file, and makes its folder where that is missing.
    fileprivate static func write(_ value: some Encodable, to path: String, in folder: String) throws {
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try PrivateFile.replace(path, with: String(decoding: try JSONEncoder().encode(value), as: UTF8.self))
    }

    func remove(_ id: CKOperation.ID) { try? FileManager.default.removeItem(atPath: path(id)) }

    private static func read(_ path: String) -> LongLivedCopy? {
        guard let data = FileManager.default.contents(atPath: path),
            let copy = try? JSONDecoder().decode(LongLivedCopy.self, from: data), copy.version == 1
        else { return nil }
        return copy
    }
}

/// The user for whom long-lived operations of a container were kept last, in a file: a program that starts without a
/// network has nobody to ask.
struct KnownUser {
    private struct Content: Codable, Equatable {
        /// Tells the user's token from others, without saying what it is.
        var token: String
        var user: String
    }

    private let folder: String
    /// The names of users' folders have no point at the beginning.
    private var path: String { folder + "/.user.json" }

    init(container: String, environment: String) { folder = LongLivedStore.folder(container, environment) }

    /// The record name of the user of a token; nil where it is not known.
    func name(of token: WebAuthToken) -> String? {
        guard let content, content.token == Self.mark(token.current) else { return nil }
        return content.user
    }

    /// Keeps the user of a token, whatever takes the place of the token. Where it cannot be written, nothing is known
    /// at the next start.
    func note(_ user: String, of token: WebAuthToken) {
        write(Content(token: Self.mark(token.current), user: user))
        token.observe { write(Content(token: Self.mark($0), user: user)) }
    }

    private static func mark(_ token: String) -> String { String(fnv1a(Array(token.utf8)), radix: 16) }

    private var content: Content? {
        FileManager.default.contents(atPath: path).flatMap { try? JSONDecoder().decode(Content.self, from: $0) }
    }

    private func write(_ content: Content) {
        if content != self.content { try? LongLivedStore.write(content, to: path, in: folder) }
    }
}

/// The receipts that the assets of a call's records are saved with.
///
/// A long-lived operation keeps them: with other ones its requests would be other requests, and what was done before
/// would not be known as done.
struct AssetReceipts: Codable, Hashable, Sendable {
    /// An asset that is saved. Another one in the same place has another receipt.
    private struct Place: Codable, Hashable {
        var field: AssetOrigin
        /// Its place in a list.
        var index: Int
        var file: String?
        var checksum: String?

        init(_ asset: CKAsset, _ index: Int, in field: AssetOrigin) {
            (self.field, self.index) = (field, index)
            (file, checksum) = (asset.fileURL?.absoluteString, asset.content?.checksum)
        }
    }

    /// The dictionaries of the assets, as JSON.
    private var dictionaries: [Place: String] = [:]

    /// The receipts that records have got.
    /// - Parameters:
    ///   - before: the same records without them.
    ///   - scope: the database of the records.
    init(of records: [RecordSnapshot], before: [RecordSnapshot], in scope: CKDatabase.Scope) {
        for (record, before) in zip(records, before) {
            for (key, value) in before.values where value.hasAsset {
                let field = AssetOrigin(record.id, key: key, scope: scope.rawValue)
                for (index, pair) in zip(value.assets, record.values[key]?.assets ?? []).enumerated() {
                    guard let json = pair.1.receipt?.serialized() else { continue }
                    dictionaries[Place(pair.0, index, in: field)] = String(decoding: json, as: UTF8.self)
                }
            }
        }
    }

    /// Gives the assets of records their receipts, where there are any.
    func apply(to records: inout [RecordSnapshot], in scope: CKDatabase.Scope) {
        for number in records.indices {
            let id = records[number].id
            records[number].replaceAssets { asset, key, index in
                let text = dictionaries[Place(asset, index, in: AssetOrigin(id, key: key, scope: scope.rawValue))]
                return text.flatMap { try? JSONParser.parse(Array($0.utf8)) }.map { asset.with(receipt: $0) }
            }
        }
    }
}
