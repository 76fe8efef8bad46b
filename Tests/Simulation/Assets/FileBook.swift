import Crypto
import RaftCore
import RecordModel
import Service

/// The files that clients uploaded, what is in them, and the receipts that they have.
final class FileBook: @unchecked Sendable {
    // Touched on the simulation's thread only.

    /// What an upload brought.
    struct Receipt: Sendable {
        /// Of the file, as the cluster shows it.
        var checksum: String
        var size: Int
        var text: String
        /// The zone that it is for.
        var zone: Int
        /// When the upload was answered.
        var time: UInt64
        /// The field that it is for.
        var field = Place.photoField
    }

    /// For how long a file is kept that nothing names; far shorter than in production, but longer than anything that
    /// keeps a command that names a file from being applied where it is in the log.
    static let graceMilliseconds: Int64 = 90_000
    /// A client that saves a file as late as this, or later, may be told that it is gone.
    static let lateNanoseconds = UInt64(graceMilliseconds - 20_000) * World.millisecond

    /// Whether clients use assets at all.
    let isUsed: Bool
    /// By checksum.
    private(set) var contents: [String: [UInt8]] = [:]
    /// By checksum.
    private(set) var hashes: [String: [UInt8]] = [:]
    private var checksums: [[UInt8]: String] = [:]
    /// The last ones, oldest first.
    private(set) var receipts: [Receipt] = []
    private var made = 0
    /// What a disk made of files, by their names; nil for those that it lost.
    var damaged: [String: [UInt8]?] = [:]
    /// What records had at the end.
    var live: [Client.Photo] = []
    /// Whether a clock is wrong, or was a moment ago: then nodes may take for old what is not.
    var isClockWrong: () -> Bool = { false }

    init(isUsed: Bool) { self.isUsed = isUsed }

    /// Bytes for another file, or for one that somebody has uploaded before.
    /// - Parameter isLarge: whether it is surely another one, of more than one piece between nodes.
    func newContent(using generator: inout SplitMix64, isLarge: Bool = false) -> [UInt8] {
        let chance = isLarge ? 99 : Int.random(in: 0..<100, using: &generator)
        if chance < 15, let old = receipts.randomElement(using: &generator) { return contents[old.checksum] ?? [] }
        made += 1
        let size =
            switch chance {
            case ..<20: 0
            case ..<80: Int.random(in: 1...2_000, using: &generator)
            case ..<95: Int.random(in: 2_000...70_000, using: &generator)
            // More than one piece between nodes, which are copied while the next ones come in.
            default: Int.random(in: 262_144...800_000, using: &generator)
            }
        var state = SplitMix64(seed: UInt64(made))
        var bytes: [UInt8] = []
        bytes.reserveCapacity(size + 8)
        while bytes.count < size { withUnsafeBytes(of: state.next()) { bytes += $0 } }
        return Array(bytes.prefix(size))
    }

    /// A file was taken.
    /// - Returns: what is wrong, where its checksum is another than before, or another file's.
    func took(_ content: [UInt8], as receipt: Receipt) -> String? {
        let hash = Array(SHA256.hash(data: content))
        receipts.append(receipt)
        // Some are used when their files are about to go.
        if receipts.count > 40 { receipts.removeFirst() }
        if let known = checksums[hash] {
            return known == receipt.checksum ? nil : "equal files have the checksums \(known) and \(receipt.checksum)"
        }
        checksums[hash] = receipt.checksum
        hashes[receipt.checksum] = hash
        guard contents.updateValue(content, forKey: receipt.checksum) == nil else {
            return "different files have the checksum \(receipt.checksum)"
        }
        return nil
    }

    func checksum(ofHash hash: [UInt8]) -> String { checksums[hash] ?? "a file that nobody uploaded" }

    func drop(_ receipt: Receipt) { receipts.removeAll { $0.text == receipt.text } }
}

extension FileBook.Receipt {
    /// The dictionary that a client saves.
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            // What its record has already needs none.
            if !text.isEmpty { writer.member("receipt", text) }
            writer.member("fileChecksum", checksum)
            writer.member("size", integer: Int64(size))
        }
    }
}

extension RecordModification.Result {
    var savesAll: Bool {
        items.allSatisfy { item in
            if case .saved = item.outcome { return true }
            return false
        }
    }

    /// Whether it was refused because a file is not there any more.
    var lacksFile: Bool {
        items.contains { item in
            guard case .failed(let error, _) = item.outcome else { return false }
            return error.code == .badRequest && error.reason.contains("its file is not there any more")
        }
    }
}
