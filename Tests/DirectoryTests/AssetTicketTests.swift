import RecordModel
import Testing
import Wire

@testable import Directory

@Suite("Signed rights to assets")
struct AssetTicketTests {
    private let secret = ClusterSecret(key: [UInt8](repeating: 7, count: 32), clearUntil: 0)
    private let stranger = ClusterSecret(key: [UInt8](repeating: 8, count: 32), clearUntil: 0)
    private let asset = AssetReference(sha256: [UInt8](repeating: 5, count: 32), size: 1_234)
    private let zone = ZoneKey(
        database: DatabaseKey(container: "iCloud.a", environment: .production, scope: .private, owner: "_u"),
        name: "trips")

    private var upload: AssetUploadTicket {
        AssetUploadTicket(
            zone: zone, recordType: "Item", field: "file", uploader: "_u", bytesMax: 99, expires: 1_000)
    }
    private var receipt: AssetReceipt {
        AssetReceipt(
            asset: asset, zone: zone, recordType: "Item", field: "file", user: "_u", expires: 1_000)
    }
    private var download: AssetDownloadTicket { AssetDownloadTicket(asset: asset, zone: zone, expires: 1_000) }

    @Test("they come back as they were given")
    func roundTrips() {
        let any = AssetReceipt(asset: asset, zone: zone, user: "", expires: 0)
        #expect(secret.ticket(secret.bytes(of: upload), as: AssetUploadTicket.self) == upload)
        #expect(secret.ticket(secret.bytes(of: receipt), as: AssetReceipt.self) == receipt)
        #expect(secret.ticket(secret.bytes(of: any), as: AssetReceipt.self) == any)
        #expect(secret.ticket(secret.bytes(of: download), as: AssetDownloadTicket.self) == download)
    }

    @Test("their bytes are those that earlier builds gave out")
    func bytes() {
        func part(_ key: UInt8, _ bytes: [UInt8]) -> [UInt8] { [key, UInt8(bytes.count)] + bytes }
        let file: [UInt8] = part(10, asset.sha256) + [16, 0xD2, 0x09]
        let place = zone.encoded()
        let (item, field, user) = (Array("Item".utf8), Array("file".utf8), Array("_u".utf8))
        let fileAndPlace: [UInt8] = part(10, file) + part(18, place)
        let uploadTexts: [UInt8] = part(18, item) + part(26, field) + part(34, user)
        #expect(upload.encoded() == part(10, place) + uploadTexts + [40, 99, 48, 0xD0, 0x0F])
        let receiptTexts: [UInt8] = part(26, item) + part(34, field) + part(42, user)
        #expect(receipt.encoded() == fileAndPlace + receiptTexts + [56, 0xD0, 0x0F])
        #expect(download.encoded() == fileAndPlace + [24, 0xD0, 0x0F])
    }

    @Test("no bit of one can be changed, none is cut, and no other cluster's is taken")
    func forged() {
        let bytes = secret.bytes(of: receipt)
        for bit in 0..<bytes.count * 8 {
            var changed = bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(secret.ticket(changed, as: AssetReceipt.self) == nil)
        }
        for count in 0..<bytes.count { #expect(secret.ticket(Array(bytes[..<count]), as: AssetReceipt.self) == nil) }
        #expect(stranger.ticket(bytes, as: AssetReceipt.self) == nil)
        #expect(secret.ticket(nil, as: AssetReceipt.self) == nil)
    }

    @Test("one kind is no other")
    func kinds() {
        #expect(secret.ticket(secret.bytes(of: download), as: AssetReceipt.self) == nil)
        #expect(secret.ticket(secret.bytes(of: upload), as: AssetDownloadTicket.self) == nil)
        #expect(secret.ticket(secret.bytes(of: receipt), as: AssetUploadTicket.self) == nil)
    }

    @Test("a checksum is that of a file in a container, and its own for each cluster")
    func checksums() {
        let other = AssetReference(sha256: [UInt8](repeating: 6, count: 32), size: 1_234)
        let checksum = secret.checksum(of: asset, in: "iCloud.a")
        #expect(Base64.decode(checksum)?.count == 21 && Base64.decode(checksum)?.first == 1)
        #expect(checksum == secret.checksum(of: asset, in: "iCloud.a"))
        for unequal in [
            secret.checksum(of: other, in: "iCloud.a"), secret.checksum(of: asset, in: "iCloud.b"),
            stranger.checksum(of: asset, in: "iCloud.a"),
        ] { #expect(checksum != unequal) }
    }

    @Test("a URL begins with the client's origin, and a download's ends with the field")
    func urls() {
        let url = AssetURL.download(download, secret, origin: "https://x:1", field: "photo")
        let parts = url.split(separator: "/")
        #expect(url.hasPrefix("https://x:1/assets/1/download/") && parts.last == "photo")
        #expect(secret.ticket(Base64URL.decode(parts[5]), as: AssetDownloadTicket.self) == download)
    }
}
