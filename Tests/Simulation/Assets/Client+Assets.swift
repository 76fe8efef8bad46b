import Cluster
import Glibc
import HistoryChecks
import RecordModel
import Service

// What a client does with files.
extension Client {
    private var files: FileBook { recorder.files }

    func useFiles() async {
        switch world.random(0...99) {
        case 0..<30:
            if let receipt = await upload(in: world.random(0...(recorder.zones.count - 1))) { await save(receipt) }
        case 30..<45: await upload(in: world.random(0...(recorder.zones.count - 1)))
        case 45..<55: await beginUpload()
        case 55..<70:
            // Saved late, or in a second record.
            if !files.receipts.isEmpty { await save(world.pick(files.receipts)) }
        case 70..<78: await removePhoto()
        default: await readPhoto()
        }
    }

    // MARK: Uploads

    /// Uploads a file to any node by the URL that any other one gave.
    @discardableResult
    func upload(in zone: Int, at node: Int? = nil) async -> FileBook.Receipt? {
        let content = files.newContent(using: &world.generator)
        guard let url = await uploadURL(in: zone) else { return nil }
        if let node { goTo(node) }
        let answer = await ask(repeats: true, triesMax: node == nil ? 4 : 1) { visit throws(RequestFailure) in
            try await visit.upload(content, to: url, cutAfter: nil)
        }
        switch answer {
        case .answered(let dictionary?, _): return took(dictionary, content, zone)
        case .answered(nil, _), .nothing: return nil
        case .failed(let failure):
            if !files.isClockWrong() { recorder.violated("client \(number): an upload is refused: \(failure.error)") }
            return nil
        }
    }

    private func took(_ dictionary: AssetDictionary, _ content: [UInt8], _ zone: Int) -> FileBook.Receipt? {
        guard let checksum = dictionary.fileChecksum, let text = dictionary.receipt,
            dictionary.size == UInt64(content.count)
        else {
            recorder.violated("client \(number): an upload of \(content.count) bytes is answered \(dictionary)")
            return nil
        }
        let receipt = FileBook.Receipt(
            checksum: checksum, size: content.count, text: text, zone: zone, time: world.now)
        if let fault = files.took(content, as: receipt) { recorder.violated(fault) }
        recorder.answered()
        checkHolders(of: checksum)
        return receipt
    }

    /// A file is on the disks of a majority of its zone's replicas before its receipt is given, unless a disk lost it.
    private func checkHolders(of checksum: String) {
        guard let name = fileName(checksum), files.damaged[name] == nil, !nodes.contains(where: \.hasLostData) else {
            return
        }
        let holders = nodes.count { access("\($0.folder)/assets/\(name)", F_OK) == 0 }
        if holders < 2 { recorder.violated("client \(number) has a receipt of \(name), which is on \(holders) disks") }
    }

    private func uploadURL(in zone: Int) async -> String? {
        let name = recorder.zones[zone].key.name
        let answer = await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.uploadURL(zone: name)
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
        write.fields[Place.photoField] = receipt.checksum
        await modify(receipt.zone, [write], isAtomic: false, receipt: receipt)
    }

    private func removePhoto() async {
        let zone = world.random(0...(recorder.zones.count - 1))
        var write = newRecordWrite(world.pick(Self.names), in: zone)
        write.fields[Place.photoField] = .some(nil)
        await modify(zone, [write], isAtomic: false)
    }

    /// A save was refused because the file of its receipt is not there any more.
    func wasTooLate(_ receipt: FileBook.Receipt) {
        files.drop(receipt)
        guard world.now - receipt.time < FileBook.lateNanoseconds, !files.isClockWrong() else { return }
        recorder.violated(
            "client \(number): the file of a receipt of \((world.now - receipt.time) / World.second) s ago is gone")
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
    }

    /// The photos that records of a zone have; nil where that is not learnt.
    func photos(of names: [String], in zone: Int) async -> [Photo]? {
        let list = names.map { #"{"recordName":"\#($0)"}"# }.joined(separator: ",")
        let body = Array(#"{"records":[\#(list)],"zoneID":{"zoneName":"\#(recorder.zones[zone].key.name)"}}"#.utf8)
        let answer = await ask(repeats: true, triesMax: isEnding ? 25 : 6) { visit throws(RequestFailure) in
            try await visit.database { request throws(RequestFailure) in
                try await RecordQueries(visit.service, request).lookUp(try LookupRecordsRequest(sent: body)).records
            }
        }
        if case .failed(let failure) = answer, failure.error.code == .zoneNotFound { return [] }
        guard case .answered(let bytes, _) = answer, let records = (try? JSONParser.parse(bytes))?.array else {
            return nil
        }
        return records.compactMap { record in
            let value = record["fields"]?[Place.photoField]?["value"]
            guard let checksum = value?["fileChecksum"]?.string, let url = value?["downloadURL"]?.string else {
                return nil
            }
            return Photo(record: record["recordName"]?.string ?? "", zone: zone, checksum: checksum, url: url)
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
