import Crypto
package import RecordModel
package import Wire

/// What the cluster gives out about assets and takes back: signed, so that every node knows what any other gave, and
/// nothing is stored. None of them can be changed, or passes for one of another kind.
package protocol AssetTicket: WireCodable, Hashable, Sendable {
    /// What it is for.
    static var purpose: String { get }
    /// From when on it is good for nothing, in milliseconds since 1970.
    var expires: Int64 { get }
}

/// The right to upload one file, at a URL that needs no other credentials.
package struct AssetUploadTicket: AssetTicket {
    /// What signs it signs nothing else.
    package static let purpose = "asset upload"
    /// How long a URL is good for, in milliseconds; what began before goes on.
    package static let lifeMilliseconds: Int64 = 15 * 60_000

    /// The zone of the records.
    package var zone: ZoneKey
    /// The type of the records.
    package var recordType: String
    /// The field that gets the file.
    package var field: String
    /// The user who asked, as records name the makers of their versions.
    package var uploader: String
    /// The most bytes that the file may have.
    package var bytesMax: UInt64
    /// In milliseconds since 1970.
    package var expires: Int64

    /// Signed by `ClusterSecret.bytes(of:)`.
    package init(
        zone: ZoneKey, recordType: String, field: String, uploader: String, bytesMax: UInt64, expires: Int64
    ) {
        self.zone = zone
        self.recordType = recordType
        self.field = field
        self.uploader = uploader
        self.bytesMax = bytesMax
        self.expires = expires
    }
}

/// The right to save a file in a record's field: given to who uploaded it, or may read a record that has it. That
/// somebody knows the file's checksum gives no right.
package struct AssetReceipt: AssetTicket {
    /// What signs it signs nothing else.
    package static let purpose = "asset receipt"
    /// How long a receipt is good for, in milliseconds.
    package static let lifeMilliseconds: Int64 = 24 * 3_600_000

    /// The file.
    package var asset: AssetReference
    /// The zone of the records.
    package var zone: ZoneKey
    /// Nil is any type.
    package var recordType: String?
    /// Nil is any field.
    package var field: String?
    /// Who may save it, as records name the makers of their versions.
    package var user: String
    /// In milliseconds since 1970.
    package var expires: Int64

    /// Signed by `ClusterSecret.bytes(of:)`.
    package init(
        asset: AssetReference, zone: ZoneKey, recordType: String? = nil, field: String? = nil, user: String,
        expires: Int64
    ) {
        self.asset = asset
        self.zone = zone
        self.recordType = recordType
        self.field = field
        self.user = user
        self.expires = expires
    }
}

/// The right to download a file, for anyone with the URL. It is given to users who may read the record's field, and is
/// good for an hour, whatever becomes of the record meanwhile.
package struct AssetDownloadTicket: AssetTicket {
    /// What signs it signs nothing else.
    package static let purpose = "asset download"
    /// How long a URL is good for, in milliseconds.
    package static let lifeMilliseconds: Int64 = 3_600_000

    /// The file.
    package var asset: AssetReference
    /// Says which nodes have the file, and whose transfer it is.
    package var zone: ZoneKey
    /// In milliseconds since 1970.
    package var expires: Int64

    /// Signed by `ClusterSecret.bytes(of:)`.
    package init(asset: AssetReference, zone: ZoneKey, expires: Int64) {
        self.asset = asset
        self.zone = zone
        self.expires = expires
    }
}

extension ClusterSecret {
    private static let codeBytes = 32
    /// What is longer was not made here, and is not looked at.
    private static let textBytesMax = 8 << 10

    /// A ticket with its code.
    package func bytes(of ticket: some AssetTicket) -> [UInt8] {
        let bytes = ticket.encoded()
        return bytes + code(of: bytes, purpose: type(of: ticket).purpose)
    }

    /// The ticket that `bytes(of:)` was made of; nil where a node of this cluster did not make exactly that.
    /// - Important: it may have expired.
    package func ticket<Ticket: AssetTicket>(_ bytes: [UInt8]?, as _: Ticket.Type = Ticket.self) -> Ticket? {
        guard let bytes, (Self.codeBytes...Self.textBytesMax).contains(bytes.count) else { return nil }
        let body = Array(bytes.dropLast(Self.codeBytes))
        guard isCode(bytes.suffix(Self.codeBytes), of: body, purpose: Ticket.purpose) else { return nil }
        return try? Ticket(decoding: body)
    }

    /// A file's checksum as clients of a container see it: base64 of 21 bytes, equal for equal files. Nobody outside
    /// can compute it, so it does not tell of files in other containers.
    package func checksum(of asset: AssetReference, in container: String) -> String {
        Base64.encode([1] + assetCode(of: asset, in: container, "fileChecksum").prefix(20))
    }

    /// What clients see of an asset in every database.
    package func dictionary(of asset: AssetReference, in container: String) -> AssetDictionary {
        var dictionary = AssetDictionary(size: asset.size)
        dictionary.fileChecksum = checksum(of: asset, in: container)
        return dictionary
    }

    /// What an upload answers.
    package func dictionary(of receipt: AssetReceipt) -> AssetDictionary {
        let (asset, container) = (receipt.asset, receipt.zone.database.container)
        var dictionary = dictionary(of: asset, in: container)
        dictionary.receipt = Base64.encode(bytes(of: receipt))
        dictionary.referenceChecksum = Base64.encode([1] + assetCode(of: asset, in: container, "reference").prefix(20))
        dictionary.wrappingKey = Base64.encode(Array(assetCode(of: asset, in: container, "wrapping").prefix(16)))
        return dictionary
    }

    private func assetCode(of asset: AssetReference, in container: String, _ label: String) -> [UInt8] {
        code(of: Array(container.utf8) + [0] + asset.sha256, purpose: "asset \(label)")
    }
}

/// Where clients send and get the bytes of assets.
package enum AssetURL {
    /// - Parameter origin: scheme and host, as the client addresses the cluster.
    package static func upload(_ ticket: AssetUploadTicket, _ secret: ClusterSecret, origin: String) -> String {
        "\(origin)/assets/1/upload/\(Base64URL.encode(secret.bytes(of: ticket)))"
    }

    /// - Parameter field: ends the URL, and names the file for who saves it.
    package static func download(
        _ ticket: AssetDownloadTicket, _ secret: ClusterSecret, origin: String, field: String
    ) -> String {
        "\(origin)/assets/1/download/\(Base64URL.encode(secret.bytes(of: ticket)))/\(field)"
    }
}

extension AssetUploadTicket: WireMessage {
    package static var blank: Self {
        AssetUploadTicket(zone: .blank, recordType: "", field: "", uploader: "", bytesMax: 0, expires: 0)
    }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &zone)
        try wire.field(2, &recordType)
        try wire.field(3, &field)
        try wire.field(4, &uploader)
        try wire.field(5, &bytesMax)
        try wire.field(6, &expires)
    }
}

extension AssetReceipt: WireMessage {
    package static var blank: Self { AssetReceipt(asset: .blank, zone: .blank, user: "", expires: 0) }

    /// 6 was the node that took the upload.
    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &asset)
        try wire.required(2, &zone)
        try wire.field(3, &recordType)
        try wire.field(4, &field)
        try wire.field(5, &user)
        try wire.field(7, &expires)
    }
}

extension AssetDownloadTicket: WireMessage {
    package static var blank: Self { AssetDownloadTicket(asset: .blank, zone: .blank, expires: 0) }

    package mutating func fields(_ wire: inout WireFields) throws(WireError) {
        try wire.required(1, &asset)
        try wire.required(2, &zone)
        try wire.field(3, &expires)
    }
}
