import Admission
import Authorization
import Cluster
import Directory
import HistoryChecks
import RecordModel
import Service

// How a user's devices follow the log of notifications.
extension Client {
    func followNotifications(of book: Watchbook, pagesMax: Int) async {
        await follow(book, device: world.chance(70) ? "" : world.pick(Watchbook.devices), pagesMax: pagesMax)
    }

    /// Follows the log from where it was left, or from a place before that.
    /// - Parameter device: the empty one is told of everything.
    /// - Returns: whether it was read to its end.
    @discardableResult
    func follow(_ book: Watchbook, device: String, pagesMax: Int) async -> Bool {
        let limit = pagesMax > 100 ? 200 : world.random(1...6)
        if let earlier = book.readers[device]?.earlier, world.chance(15) {
            await readAgain(book, device: device, from: earlier)
        }
        for _ in 0..<pagesMax where book.isUsed {
            let reader = book.readers[device] ?? Watchbook.Reader()
            guard let page = await page(book, device, after: reader.token, limit: limit) else { return false }
            take(page, onto: reader, device, of: book)
            if !page.hasMore { return book.isUsed }
        }
        return false
    }

    func askForPage(
        of book: Watchbook, _ device: String, after token: String?, limit: Int
    ) async -> Asked<ShardAnswer> {
        let (store, accountID) = (book.store, book.accountID)
        return await ask(repeats: true, triesMax: 4) { visit throws(RequestFailure) in
            try await visit.requireDirectory()
            let notifications = Notifications(
                visit.service, store, accountID: accountID, client: device.isEmpty ? nil : device)
            return try await notifications.changes(since: token, limit: limit, by: visit.deadline)
        }
    }

    func page(_ book: Watchbook, _ device: String, after token: String?, limit: Int) async -> NotificationPage? {
        let answer = await askForPage(of: book, device, after: token, limit: limit)
        moveOn()
        switch answer {
        case .answered(let answer, _):
            do throws(UnexpectedAnswer) {
                return try NotificationPage(json: answer.bytes, of: book.user)
            } catch {
                complain("\(error)", book)
            }
        case .failed(let failure): complain("the log of notifications is refused: \(failure.error)", book)
        case .nothing: break
        }
        return nil
    }

    /// What was read before must be there again, as it was.
    private func readAgain(_ book: Watchbook, device: String, from place: (token: String, last: Int64)) async {
        guard let page = await page(book, device, after: place.token, limit: 3) else { return }
        let known = (book.readers[device]?.notices ?? []).filter { $0.sequence > place.last }
        for (entry, other) in zip(page.entries, known) where entry.notice != other {
            return complain("after \(place.last) there is \(entry.notice) instead of \(other)", book)
        }
        if page.entries.count < min(3, known.count) {
            complain("after \(place.last) there are \(page.entries.count) notifications of \(known.count)", book)
        }
    }

    private func take(
        _ page: NotificationPage, onto reader: Watchbook.Reader, _ device: String, of book: Watchbook
    ) {
        var next = reader
        for (notice, payload) in page.entries {
            guard notice.sequence > next.last else { return complain("\(notice) comes after \(next.last)", book) }
            if device.isEmpty, !book.mayMiss, notice.sequence != next.last + 1 {
                return complain("\(notice) comes after \(next.last): numbers are missing", book)
            }
            guard book.see(payload, at: notice.sequence) else {
                return complain("\(notice) was something else before", book)
            }
            next.last = notice.sequence
            next.notices.append(notice)
            if book.live[notice.id]?.firesOnce == true {
                book.live[notice.id] = nil
                world.met(.firedOnce)
            }
        }
        if let token = reader.token, world.chance(30) { next.earlier = (token, reader.last) }
        next.token = page.token
        book.readers[device] = next
        recorder.answered()
    }

    // MARK: The end

    /// Reads the whole log, as soon as everything is delivered, and holds it against what was changed.
    func readBackWatchbook() async {
        let book = watchbook
        guard book.isUsed, book.isMade else { return }
        guard await readBackNotices(of: book) else { return }
        await readBackCourier(of: book)
        await readAsOther(book)
        for _ in 0..<40 where book.isUsed {
            if await haveEnded(book) { break }
            await sleep(World.second)
        }
        if book.isUsed, !(await haveEnded(book)) {
            complain("\(book.ending.sorted()) do not end with their zone", book)
        }
        if book.isUsed { await listSubscriptions(of: book) }
    }

    /// - Returns: whether every reader has what it must.
    func readBackNotices(of book: Watchbook) async -> Bool {
        for device in [""] + Watchbook.devices {
            let ofReader = device.isEmpty ? nil : device
            for _ in 0..<40 where book.isUsed {
                await follow(book, device: device, pagesMax: 1_000)
                guard !faults(of: book, ofReader, isOver: true).isEmpty else { break }
                await sleep(World.second)
            }
            guard book.isUsed else { return false }
            let faults = faults(of: book, ofReader, isOver: true)
            for fault in faults.prefix(3) {
                recorder.violated(
                    "client \(number) as \(book.accountID)\(ofReader.map { " on its \($0)" } ?? ""): \(fault)")
            }
            // Other readers would be waited for in vain.
            if !faults.isEmpty { return false }
        }
        return true
    }

    /// Gives the user the role that it lacks, or takes it, and reads everything again: what it may read counts as it is
    /// now, whenever that was entered.
    private func readAsOther(_ book: Watchbook) async {
        guard book.mayHaveHidden, !isPlain, await setRole(of: book, to: book.isReviewer != true) else { return }
        world.met(.readWithOtherRole)
        book.readers[""] = nil
        await follow(book, device: "", pagesMax: 1_000)
        for fault in faults(of: book, nil, isOver: true).prefix(3) where book.isUsed {
            recorder.violated("client \(number) as \(book.accountID), with another role: \(fault)")
        }
    }

    /// - Returns: whether it is known to be done.
    func setRole(of book: Watchbook, to isReviewer: Bool) async -> Bool {
        book.isReviewer = nil
        let member = RoleMember(
            container: Place.container, environment: .development, role: Place.reviewer, accountID: book.accountID)
        guard await settle([isReviewer ? .addRoleMember(member) : .removeRoleMember(member)]) else {
            book.isUsed = false
            return false
        }
        book.isReviewer = isReviewer
        book.twin.unreadable = isReviewer ? [] : [Place.report]
        return true
    }

    /// Takes the role from a user for a while: what others made of the type that it allows to read is not shown then,
    /// also where it was told of before.
    func readWithoutRole(_ book: Watchbook) async {
        guard book.isReviewer == true, await setRole(of: book, to: false) else { return }
        var token: String?
        while book.isUsed, let page = await page(book, "", after: token, limit: 200) {
            let hidden = page.entries.map(\.notice).first { notice in
                guard notice.zone.owner == nil, let name = notice.record else { return false }
                return name.contains("-\(Place.report)-") && !name.hasPrefix("\(book.accountID)-")
            }
            if let hidden { complain("\(hidden) is shown, whose role was taken before", book) }
            token = page.token
            if !page.hasMore { break }
        }
        _ = await setRole(of: book, to: true)
    }

    func faults(of book: Watchbook, _ device: String?, isOver: Bool) -> [String] {
        book.twin.faults(
            in: book.readers[device ?? ""]?.notices ?? [], recorder.watched, device: device, isOver: isOver)
    }
}
