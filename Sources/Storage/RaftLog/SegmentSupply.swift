/// Has the next segment ready before it is needed, out of collected files or new ones filled with zeros.
///
/// Files: `spare-N.free` wait for another use, `reserve.free` is only used when the disk is full, `*.tmp` are being
/// made. A file gets its segment name only when it is filled and synced, and the folder is synced before it is handed
/// out.
final class SegmentSupply: Sendable {
    private struct State {
        /// Named and durable, ascending by number.
        var ready: [Segment] = []
        var spares: [String] = []
        var spareCounter = 0
        var hasReserve = false
        /// The greatest number that a file was named with: never named again, for it may be in use.
        var named: UInt64 = 0
        /// Held while files are created or taken, by one caller at a time.
        var isBusy = false
        /// The number to make ready, while the thread should.
        var wanted: UInt64?
        var isClosed = false

        mutating func takeWanted() -> UInt64? {
            defer { wanted = nil }
            return wanted
        }
    }

    let folder: String
    private let options: RaftLogOptions
    private let monitor = Monitor(State())
    private var disk: any LogDisk { options.disk }

    /// - Parameter leftovers: the names of spare files found when the log was opened.
    init(folder: String, options: RaftLogOptions, spares: [String], hasReserve: Bool) {
        self.folder = folder
        self.options = options
        monitor.withLock { state in
            state.spares = spares
            state.spareCounter = (spares.compactMap { Int($0.dropFirst(6).dropLast(5)) }.max() ?? 0) + 1
            state.hasReserve = hasReserve
        }
    }

    /// Whether the reserve is there, so that ordinary writes may have the rest.
    var hasReserve: Bool { monitor.withLock { $0.hasReserve } }

    /// Asks for a segment to be made ready in the background.
    func prepare(_ number: UInt64) { monitor.update { $0.wanted = max($0.wanted ?? 0, number) } }

    /// The body of the background thread.
    func runPreparation() {
        while let number = nextWanted() { makeReady(number) }
    }

    /// Prepares the requested segments, if no thread does.
    func prepareNow() {
        if let number = monitor.withLock({ $0.takeWanted() }) { makeReady(number) }
    }

    private func makeReady(_ number: UInt64) {
        // Taking the segment meets the same failure again, and reports it.
        try? exclusively { () throws(DiskError) in
            if self.monitor.withLock({ $0.named < number }) { self.give(back: try self.make(number)) }
        }
        if !hasReserve { try? restoreReserve() }
    }

    func close() { monitor.update { $0.isClosed = true } }

    /// The segment of this number, ready to be written to.
    /// - Throws: `DiskError`; with a full disk the reserve is used instead if `mayUseReserve`.
    func take(_ number: UInt64, mayUseReserve: Bool) throws(DiskError) -> Segment {
        if let segment = takeReady(number) { return segment }
        return try exclusively { () throws(DiskError) in
            if let segment = self.takeReady(number, whileBusy: true) { return segment }
            do throws(DiskError) { return try self.make(number) } catch {
                guard error.isDiskFull, mayUseReserve, self.hasReserve else { throw error }
                self.monitor.withLock { $0.hasReserve = false }
                return try self.adopt("reserve.free", as: number, wasReserve: true)
            }
        }
    }

    /// Returns a segment that was taken and not written to, or keeps one that was made.
    func give(back segment: Segment) {
        monitor.update { state in
            state.ready.append(segment)
            state.ready.sort { $0.number < $1.number }
        }
    }

    /// Takes a collected segment's file for another use, or removes it. The folder is synced.
    /// - Parameter usedBytes: of the segments in use.
    func recycle(_ segment: Segment, usedBytes: Int) throws(DiskError) {
        let isUsable = segment.sizeBytes == options.segmentBytes
        let path = "\(folder)/\(segment.name)"
        let fate = monitor.withLock { state -> String? in
            if isUsable, !state.hasReserve {
                state.hasReserve = true
                return "reserve.free"
            }
            let sizeBytes = usedBytes + (state.spares.count + 1) * options.segmentBytes
            guard isUsable, sizeBytes <= options.sizeBytesTarget else { return nil }
            state.spareCounter += 1
            return "spare-\(state.spareCounter).free"
        }
        guard let fate else {
            try disk.remove(path)
            return try disk.syncFolder(folder)
        }
        try disk.rename(path, to: "\(folder)/\(fate)")
        try disk.syncFolder(folder)
        if fate != "reserve.free" { monitor.withLock { $0.spares.append(fate) } }
    }

    /// Makes the reserve again if it was used.
    func restoreReserve() throws(DiskError) {
        try exclusively { () throws(DiskError) in try self.makeReserve() }
    }

    private func makeReserve() throws(DiskError) {
        if hasReserve { return }
        try fill("reserve.tmp")
        try disk.rename("\(folder)/reserve.tmp", to: "\(folder)/reserve.free")
        try disk.syncFolder(folder)
        monitor.withLock { $0.hasReserve = true }
    }

    private func nextWanted() -> UInt64? {
        monitor.wait { state -> UInt64?? in
            if state.isClosed { return .some(nil) }
            guard !state.isBusy, let wanted = state.takeWanted() else { return nil }
            return wanted
        }
    }

    private func takeReady(_ number: UInt64, whileBusy: Bool = false) -> Segment? {
        monitor.withLock { state in
            guard whileBusy || !state.isBusy, let first = state.ready.firstIndex(where: { $0.number == number }) else {
                return nil
            }
            return state.ready.remove(at: first)
        }
    }

    private func exclusively<Result>(_ body: () throws(DiskError) -> Result) throws(DiskError) -> Result {
        monitor.wait { state -> Void? in
            if state.isBusy { return nil }
            state.isBusy = true
            return ()
        }
        defer { monitor.update { $0.isBusy = false } }
        return try body()
    }

    private func make(_ number: UInt64) throws(DiskError) -> Segment {
        if let spare = monitor.withLock({ $0.spares.popLast() }) {
            return try adopt(spare, as: number, wasReserve: false)
        }
        try fill("segment.tmp")
        return try adopt("segment.tmp", as: number, wasReserve: false)
    }

    /// Gives a free file a segment's name. Its old records stay: they carry other addresses.
    private func adopt(_ free: String, as number: UInt64, wasReserve: Bool) throws(DiskError) -> Segment {
        let path = "\(folder)/\(Segment.name(number))"
        try disk.rename("\(folder)/\(free)", to: path)
        monitor.withLock { $0.named = max($0.named, number) }
        try disk.syncFolder(folder)
        let file = try disk.open(path, creating: false)
        return Segment(number: number, file: file, sizeBytes: try file.size(), wasReserve: wasReserve)
    }

    /// A new file full of zeros, so that later writes change no metadata.
    private func fill(_ name: String) throws(DiskError) {
        let path = "\(folder)/\(name)"
        do throws(DiskError) { try disk.fill(path, bytes: options.segmentBytes) } catch {
            try? disk.remove(path)
            throw error
        }
    }
}

/// One file of the log.
final class Segment: Sendable {
    /// Grows with every use of a file, so it is also the generation of the records in it.
    let number: UInt64
    let file: DiskFile
    let sizeBytes: Int
    /// Whether it was the reserve before it came into use.
    let wasReserve: Bool

    init(number: UInt64, file: DiskFile, sizeBytes: Int, wasReserve: Bool = false) {
        self.number = number
        self.file = file
        self.sizeBytes = sizeBytes
        self.wasReserve = wasReserve
    }

    var name: String { Self.name(number) }

    static func name(_ number: UInt64) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 16 - digits.count)) + digits + ".seg"
    }

    /// The number in a segment's file name; nil for other names.
    static func number(ofName name: String) -> UInt64? {
        guard name.hasSuffix(".seg"), let number = UInt64(name.dropLast(4)), self.name(number) == name else {
            return nil
        }
        return number
    }
}
