import Cluster
import Glibc
import HistoryChecks
import RecordModel
import Service

// What a client does with files.
extension Client {
    private var files: FileBook { recorder.files }
    private var anyZone: Int { world.random(0...(recorder.zones.count - 1)) }

    func useFiles() async {
        switch world.random(0...99) {
        case 0..<26:
            if let receipt = await upload(in: anyZone) { await save(receipt) }
        case 26..<38: await upload(in: anyZone, field: world.chance(50) ? Place.photoField : Place.albumField)
        case 38..<46: await beginUpload()
        case 46..<57:
            // Saved late, or in a second record.
            if let receipt = files.receipts.randomElement(using: &world.generator) { await save(receipt) }
        case 57..<61: await saveTooLate()
        case 61..<67: await removePhoto()
        case 67..<73: await keepFiles()
        case 73..<77: await copyPhoto()
        case 77..<81: await tryWrongReceipt()
        default: await readPhoto()
        }
    }

    // MARK: Uploads

    /// Uploads a file to any node by the URL that any other one gave.
    @discardableResult
    func upload(in zone: Int, at node: Int? = nil, field: String = Place.photoField) async -> FileBook.Receipt? {
        let content = files.newContent(using: &world.generator)
        guard let url = await uploadURL(in: zone, field) else { return nil }
        if let node { goTo(node) }
        let answer = await ask(repeats: true, triesMax: node == nil ? 4 : 1) { visit throws(RequestFailure) in
            try await visit.upload(content, to: url, cutAfter: nil)
        }
        switch answer {
        case .answered(let dictionary?, _): return took(dictionary, content, zone, field)
        case .answered(nil, _), .nothing: return nil
        case .failed(let failure):
            if !files.isClockWrong() { recorder.violated("client \(number): an upload is refused: \(failure.error)") }
            return nil
        }
    }

    private func took(_ dictionary: AssetDictionary, _ content: [UInt8], _ zone: Int, _ field: String)
        -> FileBook.Receipt?
    {
        guard let checksum = dictionary.fileChecksum, let text = dictionary.receipt,
            dictionary.size == UInt64(content.count)
        else {
            recorder.violated("client \(number): an upload of \(content.count) bytes is answered \(dictionary)")
            return nil
        }
        let receipt = FileBook.Receipt(
            checksum: checksum, size: content.count, text: text, zone: zone, time: world.now, field: field)
        if let fault = files.took(content, as: receipt) { recorder.violated(fault) }
        recorder.answered()
        checkHolders(of: checksum)
        return receipt
    }

    /// A file is on the disks of a majority of its zone's replicas before its receipt is given, unless a disk lost it.
    func checkHolders(of checksum: String, min: Int = 2) {
        guard let name = fileName(checksum), files.damaged[name] == nil, !nodes.contains(where: \.hasLostData) else {
            return
        }
        let holders = nodes.count { access("\($0.folder)/assets/\(name)", F_OK) == 0 }
        if holders < min {
            let what = min == 1 ? "saved" : "has a receipt of"
            recorder.violated("client \(number) \(what) \(name), which is on \(holders) disks")
        }
    }

    private func uploadURL(in zone: Int, _ field: String = Place.photoField) async -> String? {
        let name = recorder.zones[zone].key.name
        let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.uploadURL(zone: name, field: field)
        }
        if case .failed(let failure) = answer, failure.error.code != .zoneNotFound, !files.isClockWrong() {
            recorder.violated("client \(number) gets no URL for an upload: \(failure.error)")
        }
        if case .answered(let url, _) = answer { return url }
        return nil
    }

    /// Tries to upload more often than a node takes uploads at a time, to one that has no room.
    func uploadInVain(at node: Int) async {
        let content = files.newContent(using: &world.generator)
        goTo(node)
        guard let url = await uploadURL(in: 0) else { return }
        for _ in 0...SimulatedNode.uploadsMax {
            goTo(node)
            let answer = await ask(repeats: true, triesMax: 1) { visit throws(RequestFailure) in
                try await visit.upload(content, to: url, cutAfter: nil)
            }
            if case .answered = answer { recorder.violated("node \(node) takes a file that it has no room for") }
        }
    }

    /// Begins an upload and goes away, after 10 s where a node is named.
    func beginUpload(at node: Int? = nil) async {
        let content = files.newContent(using: &world.generator, isLarge: node != nil)
        guard let url = await uploadURL(in: 0) else { return }
        if let node { goTo(node) }
        let end = (world.random(0...content.count), UInt64(world.random((node == nil ? 0 : 10_000)...10_000)))
        _ = await ask(repeats: false, triesMax: 1) { visit throws(RequestFailure) in
            try await visit.upload(content, to: url, cutAfter: end)
        }
    }

    // MARK: Records

    private func save(_ receipt: FileBook.Receipt) async {
        await save(world.pick(Self.names), with: receipt)
    }

    /// Saves a record with a file.
    func save(_ name: String, with receipt: FileBook.Receipt) async {
        var write = newRecordWrite(name, in: receipt.zone)
        var receipts = [receipt]
        if receipt.field == Place.albumField {
            // Others of the same zone, perhaps the same file twice.
            let others = files.receipts.filter { $0.zone == receipt.zone && $0.field == receipt.field }
            for _ in 0..<world.random(0...2) {
                if let other = others.randomElement(using: &world.generator) { receipts.append(other) }
            }
        }
        write.fields[receipt.field] = receipts.map(\.checksum).joined(separator: "+")
        await modify(receipt.zone, [write], isAtomic: false, receipts: receipts)
    }

    private func removePhoto() async {
        let zone = world.random(0...(recorder.zones.count - 1))
        var write = newRecordWrite(world.pick(Self.names), in: zone)
        write.fields[world.chance(70) ? Place.photoField : Place.albumField] = .some(nil)
        await modify(zone, [write], isAtomic: false)
    }

    /// A save was refused because the file of its receipt is not there any more.
    func wereTooLate(_ receipts: [FileBook.Receipt]) {
        world.met(.savedTooLate)
        for receipt in receipts { files.drop(receipt) }
        guard let oldest = receipts.map(\.time).min(), !files.isClockWrong(),
            world.now - oldest < FileBook.lateNanoseconds
        else { return }
        recorder.violated(
            "client \(number): the file of a receipt of \((world.now - oldest) / World.second) s ago is gone")
    }

    // MARK: Downloads

    private func readPhoto() async {
        let zone = world.random(0...(recorder.zones.count - 1))
        guard let photos = await photos(of: [world.pick(Self.names)], in: zone) else { return }
        for photo in photos { await download(photo) }
    }

    /// A record's photo.
    struct Photo: Sendable {
        var record: String
        var zone: Int
        var checksum: String
        var url: String
        var field: String
        var size: Int
        /// The record's change tag.
        var version: Version?
    }

    /// The photos that records of a zone have; nil where that is not learnt.
    func photos(of names: [String], in zone: Int) async -> [Photo]? {
        let list = names.map { #"{"recordName":"\#($0)"}"# }.joined(separator: ",")
        let body = Array(#"{"records":[\#(list)],"zoneID":{"zoneName":"\#(recorder.zones[zone].key.name)"}}"#.utf8)
        let answer = await ask(repeats: true, triesMax: isEnding ? 25 : 6) { visit throws(RequestFailure) in
            try await visit.database { request throws(RequestFailure) in
                try await RecordQueries(request).lookUp(try LookupRecordsRequest(sent: body)).records
            }
        }
        if case .failed(let failure) = answer, failure.error.code == .zoneNotFound { return [] }
        guard case .answered(let bytes, _) = answer, let records = (try? JSONParser.parse(bytes))?.array else {
            return nil
        }
        return records.flatMap { record in
            [Place.photoField, Place.albumField].flatMap { field in
                let value = record["fields"]?[field]?["value"]
                return (value?.array ?? [value ?? .null]).compactMap { file in
                    Photo(file, of: record, in: zone, field)
                }
            }
        }
    }

    /// Downloads a file by a URL that was just given, and compares it with what was uploaded.
    /// - Parameter node: where it must be had; nil for anywhere, if it can be had at all.
    func download(_ photo: Photo, at node: Int? = nil) async {
        let place = fileName(photo.checksum)
        for attempt in 1...5 {
            if let node { goTo(node) }
            let answer = await ask(repeats: true, triesMax: node == nil ? 4 : 1) { visit throws(RequestFailure) in
                let isHere = place.map { access("\(visit.node.settings.dataPath)/assets/\($0)", F_OK) == 0 } ?? false
                let bytes = try await visit.download(photo.url)
                if !isHere { visit.met(.readThroughPeer) }
                return bytes
            }
            if case .nothing = answer, attempt < 5, node != nil { continue }
            return judge(answer, photo, node)
        }
    }

    private func judge(_ answer: Asked<[UInt8]>, _ photo: Photo, _ node: Int?) {
        let what =
            "client \(number): the file \(photo.checksum) of \(photo.record) in \(recorder.zones[photo.zone].key.name)"
            + (node.map { ", at node \($0)," } ?? "")
        switch answer {
        case .answered(let bytes, _):
            recorder.answered()
            if bytes != files.contents[photo.checksum] {
                recorder.violated("\(what) has \(bytes.count) other bytes than were uploaded")
            }
        case .failed(let failure):
            if node != nil || !files.isClockWrong() {
                recorder.violated("\(what) cannot be downloaded: \(failure.error)")
            }
        case .nothing: if node != nil { recorder.violated("\(what) is not to be had") }
        }
    }

    /// Where a node has a file, below its folder of files.
    func fileName(_ checksum: String) -> String? {
        files.hashes[checksum].map { hash in
            let digits = Hex.encode(hash)
            return "\(digits.prefix(2))/\(digits.dropFirst(2))"
        }
    }
}
