import Admission
import Authorization
import Cluster
import Directory
import HistoryChecks
import RecordModel
import Service

// The ways in which a save may name a file beside the receipt of an upload, and those in which it may not.
extension Client {
    /// Saves a file whose receipt is so old that the file is gone, unless somebody saved it.
    func saveTooLate() async {
        let old = recorder.files.receipts.filter {
            world.now - $0.time > UInt64(FileBook.graceMilliseconds + 30_000) * World.millisecond
        }
        guard let receipt = old.randomElement(using: &world.generator) else { return }
        await save(world.pick(Self.names), with: receipt)
    }

    /// Sends back files that a record has as they were read, and of several perhaps not all.
    func keepFiles() async {
        let zone = world.random(0...(recorder.zones.count - 1))
        guard let all = await photos(of: Self.names, in: zone),
            let one = all.randomElement(using: &world.generator)
        else { return }
        var kept = all.filter { ($0.record, $0.field) == (one.record, one.field) }
        if kept.count > 1, world.chance(50) { kept.removeLast() }
        let receipts = kept.map {
            FileBook.Receipt(
                checksum: $0.checksum, size: $0.size, text: "", zone: zone, time: world.now, field: $0.field)
        }
        let fields: [String: String?] = [
            Place.valueField: newValue(), one.field: kept.map(\.checksum).joined(separator: "+"),
        ]
        let kind: RecordWrite.Kind = world.chance(50) ? .update : .replace
        await modify(
            zone, [RecordWrite(kind, one.record, fields: fields, version: one.version)], isAtomic: false,
            receipts: receipts)
        world.met(.keptFile)
    }

    /// Saves a record's file in another record, perhaps of another zone.
    func copyPhoto() async {
        let (zone, target) = (
            world.random(0...(recorder.zones.count - 1)), world.random(0...(recorder.zones.count - 1))
        )
        let all = await photos(of: Self.names, in: zone)?.filter { $0.field == Place.photoField }
        guard let photo = all?.randomElement(using: &world.generator) else { return }
        let names = [zone, target].map { recorder.zones[$0].key.name }
        let zones = #""zoneID":{"zoneName":"\#(names[0])"},"targetZoneID":{"zoneName":"\#(names[1])"}"#
        let asset = #"{"recordName":"\#(photo.record)","fieldName":"\#(photo.field)"}"#
        let body = Array(#"{\#(zones),"assets":[\#(asset)]}"#.utf8)
        let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.database { request throws(RequestFailure) in
                try await Assets(request).rereference(try AssetsRereferenceRequest(sent: body)).first
            }
        }
        guard case .answered(.found(let file)?, _) = answer else { return }
        guard let checksum = file["fileChecksum"]?.string, let text = file["receipt"]?.string,
            case .integer(let size)? = file["size"], recorder.files.contents[checksum]?.count == Int(size)
        else { return recorder.violated("client \(number): a copy of a file is \(file)") }
        world.met(.copiedFile)
        let receipt = FileBook.Receipt(
            checksum: checksum, size: Int(size), text: text, zone: target, time: world.now)
        await save(world.pick(Self.names), with: receipt)
    }

    /// Names a file by a receipt that is not good for that: it must be refused.
    func tryWrongReceipt() async {
        let files = recorder.files
        guard world.chance(85) else { return await tryReceiptOfOther() }
        guard var receipt = files.receipts.randomElement(using: &world.generator) else { return }
        var zone = receipt.zone
        let what = world.pick(["zone", "size", "checksum", "field", "text", "none"])
        switch what {
        case "zone": zone = (zone + 1) % recorder.zones.count
        case "size": receipt.size += receipt.size == 0 ? 1 : world.pick([-1, 1])
        case "checksum":
            guard let other = files.contents.keys.sorted().first(where: { $0 != receipt.checksum }) else { return }
            receipt.checksum = other
        case "field": receipt.field = receipt.field == Place.photoField ? Place.albumField : Place.photoField
        case "text": receipt.text = String(receipt.text.reversed())
        // No record has the name.
        default: receipt.text = ""
        }
        let body = saveOfNobody(receipt, in: recorder.zones[zone].key.name)
        let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.database { request throws(RequestFailure) in
                try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
            }
        }
        judgeRefusal(answer, of: what)
    }

    /// A save of a record that nobody else looks at.
    private func saveOfNobody(_ receipt: FileBook.Receipt, in zone: String) -> [UInt8] {
        let write = RecordWrite(.forceUpdate, "nobody-\(newValue())", fields: [receipt.field: receipt.checksum])
        return [write].body(zone: zone, isAtomic: false, receipts: [receipt])
    }

    private func judgeRefusal(_ answer: Asked<RecordModification.Result>, of what: String) {
        switch answer {
        case .answered(let result, _):
            if case .failed(let error, _)? = result.items.first?.outcome, error.code == .badRequest {
                return world.met(.refusedReceipt)
            }
            recorder.violated("client \(number): a receipt with a wrong \(what) is answered \(result.items)")
        case .failed(let failure) where failure.error.code == .zoneNotFound || recorder.files.isClockWrong(): break
        case .failed(let failure):
            recorder.violated("client \(number): a receipt with a wrong \(what) is answered \(failure.error)")
        case .nothing: break
        }
    }

    /// Saves a public record with a file that another user uploaded for public records.
    private func tryReceiptOfOther() async {
        let content = recorder.files.newContent(using: &world.generator)
        let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            let url = try await visit.uploadURL(
                zone: ZoneKey.defaultZoneName, field: Place.photoField, isPublic: true)
            return try await visit.upload(content, to: url, cutAfter: nil)
        }
        guard case .answered(let file?, _) = answer, let checksum = file.fileChecksum, let text = file.receipt else {
            return
        }
        let receipt = FileBook.Receipt(
            checksum: checksum, size: content.count, text: text, zone: 0, time: world.now)
        let (body, user) = (saveOfNobody(receipt, in: ZoneKey.defaultZoneName), Place.user(Place.accounts[1]))
        let saved = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            let requester = Requester(Admitted(caller: Caller(user: user)), requestID: "", address: nil)
            let request = DatabaseRequest(
                visit.service, key: Watchbook.publicDatabase, requester: requester,
                in: visit.service.node.directory.snapshot, deadline: visit.deadline)
            return try await RecordModification(request).run(try ModifyRecordsRequest(sent: body))
        }
        judgeRefusal(saved, of: "user")
    }
}

extension Client.Photo {
    init?(_ file: JSONValue, of record: JSONValue, in zone: Int, _ field: String) {
        guard let checksum = file["fileChecksum"]?.string, let url = file["downloadURL"]?.string,
            case .integer(let size)? = file["size"]
        else { return nil }
        self.init(
            record: record["recordName"]?.string ?? "", zone: zone, checksum: checksum, url: url, field: field,
            size: Int(size), version: record["recordChangeTag"]?.string.flatMap(ChangeTag.init).map { Version($0) })
    }
}
