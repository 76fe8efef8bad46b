package import Wire

/// A file that a record names: by its bytes, so equal files are one.
package struct AssetReference: Hashable, Sendable, CustomStringConvertible {
    /// The SHA-256 of the file's bytes; 32 bytes.
    package private(set) var sha256: [UInt8]
    /// The file's size in bytes.
    package private(set) var size: UInt64

    /// - Parameters:
    ///   - sha256: 32 bytes; anything else is a programmer error.
    ///   - size: at most `sizeMax`.
    package init(sha256: [UInt8], size: UInt64) {
        precondition(sha256.count == Self.hashBytes, "a SHA-256 of \(sha256.count) bytes")
        precondition(size <= Self.sizeMax, "an asset of \(size) bytes")
        self.sha256 = sha256
        self.size = size
    }

    /// The hash's digits and the size, for logs.
    package var description: String {
        "\(Hex.encode(sha256)) (\(size) bytes)"
    }

    /// Bytes of a SHA-256.
    package static let hashBytes = 32
    /// The largest size that has a binary form; limits of uploads are far below it.
    package static let sizeMax: UInt64 = 1 << 40
    /// For how long an asset is kept that no record names, in milliseconds: a receipt lives a day, a download's address
    /// an hour, and the time of a shard, from which this is counted, may lag.
    package static let graceMilliseconds: Int64 = 25 * 3_600_000 + ShardClock.lagMax
    /// What a reference counts for in a record's size, in bytes.
    package static let countedBytes = 40
}

extension AssetReference: WireMessage {
    /// Of no bytes, and no file's.
    package static let blank = AssetReference(sha256: Array(repeating: 0, count: hashBytes), size: 0)

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &sha256)
        try wire.required(2, &size)
    }

    /// - Throws: `WireError` if a part is no hash or size; a retry does not help.
    package mutating func check() throws(WireError) {
        guard sha256.count == Self.hashBytes else { throw .invalidValue(field: 1) }
        guard size <= Self.sizeMax else { throw .invalidValue(field: 2) }
    }
}

extension FieldValue {
    /// The assets that the value holds, in order; one that it holds twice is there twice.
    package var assets: [AssetReference] {
        switch self {
        case .asset(let asset): [asset]
        case .list(.asset, let members): members.compactMap { if case .asset(let asset) = $0 { asset } else { nil } }
        default: []
        }
    }
}

extension Fields {
    /// The assets that the fields hold, by the names of their fields.
    package var assets: [AssetReference] {
        var assets: [AssetReference] = []
        for field in all { assets += field.value.assets }
        return assets
    }
}

extension [AssetReference] {
    /// Their sizes together, each as often as it is there: what they count for in a quota.
    package var countedBytes: Int64 {
        reduce(0) { sum, asset in
            let (next, overflow) = sum.addingReportingOverflow(Int64(asset.size))
            return overflow ? .max : next
        }
    }
}
