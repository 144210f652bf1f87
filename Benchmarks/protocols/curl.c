// Like fetch-loop, with curl's library: the easy interface for one request at a time, otherwise the multi interface.
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long nanoseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static size_t received;

static size_t receive(char *bytes, size_t size, size_t count, void *context) {
    (void)bytes, (void)context;
    received += size * count;
    return size * count;
}

static void check(CURL *easy, CURLcode code) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK || status != 200) {
        fprintf(stderr, "%s, status %ld\n", curl_easy_strerror(code), status);
        exit(1);
    }
}

static void run_multi(CURLM *multi, CURL **handles, int concurrency, long count) {
    long begun = 0, done = 0;
    for (; begun < concurrency && begun < count; begun++) curl_multi_add_handle(multi, handles[begun]);
    while (done < count) {
        int running, left;
        curl_multi_perform(multi, &running);
        for (CURLMsg *message; (message = curl_multi_info_read(multi, &left));) {
            CURL *easy = message->easy_handle;
            check(easy, message->data.result);
            done++;
            curl_multi_remove_handle(multi, easy);
            if (begun < count) begun++, curl_multi_add_handle(multi, easy);
        }
        if (done < count && running) curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
}

static void run(CURLM *multi, CURL **handles, int concurrency, long count) {
    received = 0;
    if (concurrency > 1) {
        run_multi(multi, handles, concurrency, count);
    } else {
        for (long index = 0; index < count; index++) check(handles[0], curl_easy_perform(handles[0]));
    }
    if (received != 14 * (size_t)count) exit(1);
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    long requests = atol(arguments[2]);
    int concurrency = atoi(arguments[3]);
    curl_global_init(CURL_GLOBAL_ALL);
    CURLM *multi = curl_multi_init();
    CURL **handles = calloc(concurrency, sizeof *handles);
    for (int index = 0; index < concurrency; index++) {
        handles[index] = curl_easy_init();
        curl_easy_setopt(handles[index], CURLOPT_URL, arguments[1]);
        curl_easy_setopt(handles[index], CURLOPT_WRITEFUNCTION, receive);
        curl_easy_setopt(handles[index], CURLOPT_NOPROXY, "*");
        curl_easy_setopt(handles[index], CURLOPT_NOSIGNAL, 1L);
    }
    run(multi, handles, concurrency, requests / 10);
    long long cpu = nanoseconds(CLOCK_PROCESS_CPUTIME_ID), wall = nanoseconds(CLOCK_MONOTONIC);
    run(multi, handles, concurrency, requests);
    printf("RESULT %ld %lld %lld\n", requests, nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu,
           nanoseconds(CLOCK_MONOTONIC) - wall);
    return 0;
}
