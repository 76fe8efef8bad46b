import Crypto
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
    private static let name = Array("ZKASSET".utf8)

    static func header(isSealed: Bool, salt: [UInt8]) -> [UInt8] { name + [isSealed ? 2 : 1] + salt }

    /// How a file is sealed by its header: nil if it is no header, an inner nil where it is in the clear.
    static func cipher(of header: [UInt8], key: SymmetricKey?) -> AssetCipher?? {
        guard header.count == headerBytes, Array(header[..<7]) == name else { return nil }
        switch header[7] {
        case 1: return .some(nil)
        case 2: return key.map { .some(AssetCipher(key: $0, salt: Array(header[8...]))) } ?? nil
        default: return nil
        }
    }

    /// How long the file of so many bytes is.
    static func fileBytes(of size: UInt64, isSealed: Bool) -> UInt64 {
        let chunks = (size + UInt64(chunkBytes) - 1) / UInt64(chunkBytes)
        return UInt64(headerBytes) + size + (isSealed ? chunks * UInt64(tagBytes) : 0)
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

    func seal(_ bytes: [UInt8], chunk: UInt64) throws -> [UInt8] {
        let box = try AES.GCM.seal(bytes, using: key, nonce: nonce(chunk))
        return Array(box.ciphertext) + Array(box.tag)
    }

    /// - Throws: where the bytes are not those that were sealed as this chunk.
    func open(_ bytes: [UInt8], chunk: UInt64) throws -> [UInt8] {
        let end = max(bytes.count - AssetFormat.tagBytes, 0)
        return Array(
            try AES.GCM.open(
                AES.GCM.SealedBox(nonce: nonce(chunk), ciphertext: bytes[..<end], tag: bytes[end...]), using: key))
    }
}

/// An asset's file that is being read. Any number of threads may.
struct AssetFile: Sendable {
    let reference: AssetReference
    private let file: DiskFile
    private let disk: any LogDisk
    private let cipher: AssetCipher?

    /// - Throws: `AssetError.missing` where the file is not that long, or not a file of ours; `DiskError`.
    init(_ file: DiskFile, of reference: AssetReference, disk: any LogDisk, key: SymmetricKey?) throws {
        let header = try disk.bytes(of: file, at: 0, count: AssetFormat.headerBytes)
        guard let cipher = AssetFormat.cipher(of: header, key: key),
            try file.size() == Int(AssetFormat.fileBytes(of: reference.size, isSealed: cipher != nil))
        else { throw AssetError.missing }
        self.reference = reference
        self.file = file
        self.disk = disk
        self.cipher = cipher
    }

    /// When it was last asked to be kept, in milliseconds since 1970.
    func modified() throws(DiskError) -> Int64 { try file.modified() }

    /// Asks to keep it, durably.
    func renew(_ time: Int64) throws(DiskError) { try disk.stamp(file, time) }

    /// The bytes of a range, which lies within the file.
    /// - Throws: `AssetError.missing` where the bytes are damaged and that can be seen; `DiskError`.
    func bytes(_ range: Range<UInt64>) throws -> [UInt8] {
        precondition(range.upperBound <= reference.size, "\(range) of \(reference.size) bytes")
        guard let cipher else {
            let bytes = try disk.bytes(
                of: file, at: AssetFormat.headerBytes + Int(range.lowerBound), count: range.count)
            guard bytes.count == range.count else { throw AssetError.missing }
            return bytes
        }
        let chunkBytes = UInt64(AssetFormat.chunkBytes)
        var bytes: [UInt8] = []
        var offset = range.lowerBound
        while offset < range.upperBound {
            let chunk = offset / chunkBytes
            let start = chunk * chunkBytes
            let plainBytes = Int(min(chunkBytes, reference.size - start))
            let position = AssetFormat.headerBytes + Int(start) + Int(chunk) * AssetFormat.tagBytes
            let sealed = try disk.bytes(of: file, at: position, count: plainBytes + AssetFormat.tagBytes)
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

/// An asset's file that is being written, hashed on the way. Belongs to one thread at a time.
struct AssetWriter {
    let path: String
    private let file: DiskFile
    private let disk: any LogDisk
    private let cipher: AssetCipher?
    private let limit: UInt64
    private var pending: [UInt8] = []
    private var chunks: UInt64 = 0
    private var position = AssetFormat.headerBytes
    private var hasher = SHA256()
    private(set) var size: UInt64 = 0

    init(path: String, limit: UInt64, salt: [UInt8], disk: any LogDisk, key: SymmetricKey?) throws(DiskError) {
        self.path = path
        self.limit = limit
        self.disk = disk
        cipher = key.map { AssetCipher(key: $0, salt: salt) }
        file = try disk.open(path, creating: true)
        try disk.writeAll(AssetFormat.header(isSealed: key != nil, salt: salt), to: file, at: 0)
    }

    /// - Throws: `AssetError.tooLarge`, `DiskError`; then the file is of no use.
    mutating func write(_ bytes: some Collection<UInt8>) throws {
        size += UInt64(bytes.count)
        guard size <= limit else { throw AssetError.tooLarge(limit: limit) }
        pending += bytes
        var done = 0
        while pending.count - done >= AssetFormat.chunkBytes {
            try put(Array(pending[done..<done + AssetFormat.chunkBytes]))
            done += AssetFormat.chunkBytes
        }
        pending.removeFirst(done)
    }

    /// Writes what is left and makes it durable under the file's present name.
    mutating func finish(time: Int64) throws -> AssetReference {
        if !pending.isEmpty { try put(pending) }
        pending = []
        try disk.stamp(file, time)
        return AssetReference(sha256: Array(hasher.finalize()), size: size)
    }

    private mutating func put(_ chunk: [UInt8]) throws {
        hasher.update(data: chunk)
        let bytes = try cipher?.seal(chunk, chunk: chunks) ?? chunk
        try disk.writeAll(bytes, to: file, at: position)
        position += bytes.count
        chunks += 1
    }
}
