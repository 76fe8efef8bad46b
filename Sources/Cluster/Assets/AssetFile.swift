import Crypto
import Foundation
import Glibc
import RecordModel
import Storage

/// How an asset lies in its file: a header of 24 bytes (seven of a name, one that says whether it is sealed, sixteen
/// random ones), then the bytes in chunks of 64 KiB, of which the last may be shorter.
///
/// A sealed file's chunks are AES-256-GCM, each 16 bytes longer, under a key derived from the cluster's key and the
/// header's random bytes; the nonce is the chunk's number. So a range is read without the rest, and no chunk passes for
/// another. Where a file ends is known from outside.
enum AssetFormat {
    static let headerBytes = 24
    static let chunkBytes = 65_536
    static let tagBytes = 16
    static let nonceBytes = 12
    private static let name = Array("ZKASSET".utf8)

    static func header(isSealed: Bool, salt: [UInt8]) -> [UInt8] { name + [isSealed ? 2 : 1] + salt }

    /// What tells whether a key is the one that files were sealed with: 40 bytes that only the key gives, then their
    /// SHA-256, so that damage does not pass for another key.
    static func keyCheck(_ key: SymmetricKey) -> [UInt8] {
        let mark = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: key, info: Array("zonekeeper asset key check".utf8), outputByteCount: 32)
        return withChecksum(name + [3] + mark.withUnsafeBytes { Array($0) })
    }

    /// Whether bytes are what `keyCheck` gives for some key.
    static func isKeyCheck(_ bytes: [UInt8]) -> Bool {
        bytes.count == 72 && bytes.starts(with: name + [3]) && bytes == withChecksum(Array(bytes[..<40]))
    }

    private static func withChecksum(_ bytes: [UInt8]) -> [UInt8] { bytes + Array(SHA256.hash(data: bytes)) }

    /// Whether a header is that of a sealed file.
    static func isSealed(_ header: [UInt8]) -> Bool {
        header.count == headerBytes && Array(header[..<8]) == name + [2]
    }

    /// How a file is sealed by its header: nil if it is no header, an inner nil where it is in the clear.
    static func cipher(of header: [UInt8], key: SymmetricKey?) -> AssetCipher?? {
        guard header.count == headerBytes, Array(header[..<7]) == name else { return nil }
        switch header[7] {
        case 1: return .some(nil)
        case 2: return key.map { .some(AssetCipher(key: $0, salt: Array(header[8...]))) } ?? nil
        default: return nil
        }
    }

    /// How many bytes a file of this length holds; nil where no file is so long.
    static func size(ofFile bytes: UInt64, isSealed: Bool) -> UInt64? {
        guard bytes >= UInt64(headerBytes) else { return nil }
        let payload = bytes - UInt64(headerBytes)
        guard isSealed else { return payload <= AssetReference.sizeMax ? payload : nil }
        let whole = UInt64(chunkBytes + tagBytes)
        let rest = payload % whole
        guard rest == 0 || rest > UInt64(tagBytes) else { return nil }
        let tags = (payload / whole + (rest == 0 ? 0 : 1)) * UInt64(tagBytes)
        return payload - tags <= AssetReference.sizeMax ? payload - tags : nil
    }
}

/// Seals and opens the chunks of one file.
struct AssetCipher: Sendable {
    private let key: SymmetricKey

    init(key: SymmetricKey, salt: [UInt8]) {
        self.key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: key, salt: salt, info: Array("zonekeeper asset file".utf8), outputByteCount: 32)
    }

    private func nonce(_ chunk: UInt64) throws -> AES.GCM.Nonce {
        try AES.GCM.Nonce(data: [0, 0, 0, 0] + withUnsafeBytes(of: chunk.bigEndian) { Array($0) })
    }

    /// Gives `body` a chunk as it lies in the file.
    func seal(_ bytes: UnsafeRawBufferPointer, chunk: UInt64, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let nonce = try nonce(chunk)
        let box = try AES.GCM.seal(bytes, using: key, nonce: nonce)
        guard let combined = box.combined else { preconditionFailure("a nonce of 12 bytes has a combined form") }
        try combined.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[AssetFormat.nonceBytes...])) }
    }

    /// - Throws: where the bytes are not those that were sealed as this chunk.
    func open(_ bytes: [UInt8], chunk: UInt64) throws -> [UInt8] {
        let end = max(bytes.count - AssetFormat.tagBytes, 0)
        return Array(
            try AES.GCM.open(
                AES.GCM.SealedBox(nonce: nonce(chunk), ciphertext: bytes[..<end], tag: bytes[end...]), using: key))
    }
}

/// What is in a file, in the clear. Any number of threads may read it, also while more is written behind.
struct AssetContent: Sendable {
    let file: DiskFile
    let disk: any LogDisk
    let cipher: AssetCipher?

    /// The bytes of a range.
    /// - Parameter size: where the content ends; it has a range's end, and the end of its last chunk, within it.
    /// - Throws: `AssetError.missing` where the bytes are damaged and that can be seen; `DiskError`.
    func bytes(_ range: Range<UInt64>, of size: UInt64) throws -> [UInt8] {
        precondition(range.upperBound <= size, "\(range) of \(size) bytes")
        guard let cipher else {
            let bytes = try AssetError.seeingDamage {
                try disk.bytes(of: file, at: AssetFormat.headerBytes + Int(range.lowerBound), count: range.count)
            }
            guard bytes.count == range.count else { throw AssetError.missing }
            return bytes
        }
        let chunkBytes = UInt64(AssetFormat.chunkBytes)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        var offset = range.lowerBound
        while offset < range.upperBound {
            let chunk = offset / chunkBytes
            let start = chunk * chunkBytes
            let plainBytes = Int(min(chunkBytes, size - start))
            let position = AssetFormat.headerBytes + Int(start) + Int(chunk) * AssetFormat.tagBytes
            let sealed = try AssetError.seeingDamage {
                try disk.bytes(of: file, at: position, count: plainBytes + AssetFormat.tagBytes)
            }
            guard let plain = try? cipher.open(sealed, chunk: chunk), plain.count == plainBytes else {
                throw AssetError.missing
            }
            let end = min(range.upperBound, start + UInt64(plainBytes))
            bytes += plain[Int(offset - start)..<Int(end - start)]
            offset = end
        }
        return bytes
    }
}

/// An asset's file that is being read. Any number of threads may.
struct AssetFile: Sendable {
    let reference: AssetReference
    private let content: AssetContent

    /// - Throws: `AssetError.missing` where the file is no file of ours; `DiskError`.
    init(_ file: DiskFile, sha256: [UInt8], disk: any LogDisk, key: SymmetricKey?) throws {
        let header = try disk.bytes(of: file, at: 0, count: AssetFormat.headerBytes)
        guard let cipher = AssetFormat.cipher(of: header, key: key),
            let size = AssetFormat.size(ofFile: UInt64(try file.size()), isSealed: cipher != nil)
        else { throw AssetError.missing }
        reference = AssetReference(sha256: sha256, size: size)
        content = AssetContent(file: file, disk: disk, cipher: cipher)
    }

    /// Whether another one is the same file on the disk, not only one of the same name.
    func isSame(as other: AssetFile) throws(DiskError) -> Bool { try content.file.isSame(as: other.content.file) }

    /// When it was last asked to be kept, in milliseconds since 1970.
    func modified() throws(DiskError) -> Int64 { try content.file.modified() }

    /// Asks to keep it, durably.
    func renew(_ time: Int64) throws(DiskError) { try content.disk.stamp(content.file, time) }

    /// The bytes of a range, which lies within the file.
    /// - Throws: `AssetError.missing` where the bytes are damaged and that can be seen; `DiskError`.
    func bytes(_ range: Range<UInt64>) throws -> [UInt8] { try content.bytes(range, of: reference.size) }
}

/// An asset's file that is being written, hashed on the way. Belongs to one thread at a time.
struct AssetWriter {
    let path: String
    private let file: DiskFile
    private let disk: any LogDisk
    private let cipher: AssetCipher?
    /// The most bytes that it may have.
    let limit: UInt64
    private var pending: [UInt8] = []
    private var chunks: UInt64 = 0
    private var position = AssetFormat.headerBytes
    /// Up to where the system was asked to bring it to the disk.
    private var begun = AssetFormat.headerBytes
    private var hasher = SHA256()
    private(set) var size: UInt64 = 0

    /// What was written, for others to read meanwhile: all chunks but the last are there.
    var content: AssetContent { AssetContent(file: file, disk: disk, cipher: cipher) }

    init(path: String, limit: UInt64, salt: [UInt8], disk: any LogDisk, key: SymmetricKey?) throws(DiskError) {
        self.path = path
        self.limit = limit
        self.disk = disk
        cipher = key.map { AssetCipher(key: $0, salt: salt) }
        file = try disk.open(path, creating: true)
        try disk.writeAll(AssetFormat.header(isSealed: key != nil, salt: salt), to: file, at: 0)
    }

    private static let beginBytes = 2 << 20

    /// - Throws: `AssetError.tooLarge`, `DiskError`; then the file is of no use.
    mutating func write(_ bytes: [UInt8]) throws {
        size += UInt64(bytes.count)
        guard size <= limit else { throw AssetError.tooLarge(limit: limit) }
        // Without a copy where no part of a chunk is left from before.
        if pending.isEmpty { pending = bytes } else { pending += bytes }
        let whole = pending.count - pending.count % AssetFormat.chunkBytes
        try put(whole)
        pending = whole == pending.count ? [] : Array(pending[whole...])
    }

    /// Writes what is left and makes it durable under the file's present name.
    mutating func finish(time: Int64) throws -> AssetReference {
        try put(pending.count)
        pending = []
        try disk.stamp(file, time)
        return AssetReference(sha256: Array(hasher.finalize()), size: size)
    }

    /// Writes the first bytes of those that are pending, chunk by chunk; only a file's last chunk is shorter.
    private mutating func put(_ count: Int) throws {
        let bytes = pending
        try bytes.withUnsafeBytes { bytes in
            for start in stride(from: 0, to: count, by: AssetFormat.chunkBytes) {
                let end = min(start + AssetFormat.chunkBytes, count)
                let chunk = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
                hasher.update(bufferPointer: chunk)
                guard let cipher else {
                    try disk.writeAll(chunk, to: file, at: position)
                    position += chunk.count
                    continue
                }
                try cipher.seal(chunk, chunk: chunks) { sealed in
                    try disk.writeAll(sealed, to: file, at: position)
                    position += sealed.count
                }
                chunks += 1
            }
        }
        // So that there is less to wait for at the end. Each time costs the driver as much, however little it is.
        guard position - begun >= Self.beginBytes else { return }
        disk.beginSync(file, begun..<position)
        begun = position
    }
}

/// Why an asset's bytes cannot be had or kept.
package enum AssetError: Error, Hashable, Sendable, CustomStringConvertible {
    /// More bytes than are taken. Nothing is kept.
    case tooLarge(limit: UInt64)
    /// The disk of this node has no room for files. Nothing is kept; another node may have room.
    case diskFull
    /// No node that could be asked has the file, or has it whole.
    case missing
    /// Too much is being done already, or too few nodes can be reached. It may be tried again.
    case unavailable(String)

    /// What was wrong and what to do about it.
    package var description: String {
        switch self {
        case .tooLarge(let limit): "the file has more than \(limit) bytes"
        case .diskFull: "the disk of this node has no room for files: make room on it, or use another node"
        case .missing: "no node that can be reached has the file's bytes"
        case .unavailable(let reason): reason
        }
    }

    /// Reads of a file. What the disk cannot read any more is damage, as other bytes are.
    static func seeingDamage<Value>(_ read: () throws -> Value) throws -> Value {
        do {
            return try read()
        } catch let error as DiskError where error.code == DiskError.ioFailure {
            throw AssetError.missing
        }
    }

    /// What an error of a file means to who asked.
    init(_ error: any Error) {
        switch error {
        case let error as AssetError: self = error
        case let error as DiskError where error.isDiskFull: self = .diskFull
        case is QueueFull: self = .unavailable("this node has as many files in work as it may; try again")
        default: self = .unavailable("\(error)")
        }
    }
}
