import Cluster
import HistoryChecks
import RecordModel
import Service

// A user who is told of more than is kept.
extension Client {
    private static let flooders = 50
    private static let floodRecords = 40

    /// Has so many notifications made that the first ones are not kept, and goes on from a token of before.
    func floodNotifications() async {
        let book = Watchbook(client: number, serial: 1_000)
        let zone = book.zone(Watchbook.zoneNames[0])
        // Without an account, the user would count as deleted, and the log would be forgotten.
        guard await makeUser(of: book), await change([zone.name], of: book, isCreation: true) else { return }
        for number in 0..<Self.flooders {
            let subscription = NotificationTwin.Subscription(
                id: "f\(number)", kind: .query, zone: zone.name, events: [.create])
            await save(subscription, of: book)
            guard book.isUsed, book.live[subscription.id] != nil else { return }
        }
        guard await flood(book, zone, 0..<1), let (token, sequence) = await firstPlace(of: book) else { return }
        let all = Int(Limits.notificationsMax) / Self.flooders + Self.floodRecords
        for start in stride(from: 1, to: all, by: Self.floodRecords) {
            guard await flood(book, zone, start..<start + Self.floodRecords) else { return }
        }
        for _ in 0..<120 where book.isUsed && !isEnding {
            let failure: RequestFailure
            switch await askForPage(of: book, "", after: token, limit: 1) {
            case .failed(let found): failure = found
            case .answered(let answer, _):
                let next = (try? NotificationPage(json: answer.bytes, of: book.user))?.entries.first?.notice
                if let next, next.sequence != sequence + 1 {
                    return complain("after \(sequence) comes \(next), and the token has not expired", book)
                }
                fallthrough
            case .nothing:
                await sleep(World.second)
                continue
            }
            guard failure.error.reason.contains("not kept any more") else {
                return complain("the log of notifications is refused: \(failure.error)", book)
            }
            world.met(.expiredToken)
            return await readFlood(book)
        }
    }

    /// - Returns: whether records of these numbers were made.
    private func flood(_ book: Watchbook, _ zone: WatchedHistory.Zone, _ numbers: Range<Int>) async -> Bool {
        let changes = numbers.map { number in
            WatchedHistory.Change(name: "r\(number)", event: .create, kind: nil, value: "\(number)")
        }
        return await save(changes, in: zone, from: nil, book)
    }

    /// A token, and the number of the notification that it stands behind.
    private func firstPlace(of book: Watchbook) async -> (token: String, sequence: Int64)? {
        for _ in 0..<30 where !isEnding {
            guard let page = await page(book, "", after: nil, limit: 1) else { return nil }
            if let last = page.entries.last { return (page.token, last.notice.sequence) }
            await sleep(World.second)
        }
        return nil
    }

    /// What is kept goes on without a gap, and every subscription tells of every record in order.
    private func readFlood(_ book: Watchbook) async {
        var token: String?
        var last: Int64?
        var told: [String: Int] = [:]
        while !isEnding {
            // More comes meanwhile, and the place where this reads may not be kept any more, either.
            guard case .answered(let answer, _) = await askForPage(of: book, "", after: token, limit: 200),
                let page = try? NotificationPage(json: answer.bytes, of: book.user)
            else { return }
            for (notice, _) in page.entries {
                if let last, notice.sequence != last + 1 { return complain("\(notice) comes after \(last)", book) }
                guard let number = notice.value.flatMap({ Int($0) }) else { return complain("\(notice)", book) }
                if let before = told.updateValue(number, forKey: notice.id), number != before + 1 {
                    return complain("\(notice) comes after one of \(before)", book)
                }
                last = notice.sequence
            }
            token = page.token
            if !page.hasMore { return recorder.answered() }
        }
    }
}
